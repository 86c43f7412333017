/* One output stream of a run on its way from the pipe to the capture and, if wanted, live to the caller. */
#ifndef HC_FLOW_STREAM_H
#define HC_FLOW_STREAM_H

#include "base/capture.h"
#include "base/utf8.h"

#include <stdbool.h>

#define HC_STREAM_CHUNK 65536

struct hc_stream {
    int pipe; /* -1: at its end */
    int live; /* -1: none, or its reader is gone */
    bool visible;
    struct hc_visible escape;
    struct hc_capture capture;
    char *pending; /* bytes the caller has not taken yet */
    size_t pending_bytes, pending_at;
};

int hc_stream_init(struct hc_stream *stream, int pipe, int live, bool visible, uint64_t keep_bytes);
/* Reads one chunk; while the caller has not taken the last one nothing more is read, so memory stays bounded.
 */
int hc_stream_read(struct hc_stream *stream);
/* Hands over what is pending, as far as it goes without blocking. */
void hc_stream_pass(struct hc_stream *stream);
bool hc_stream_wants_read(const struct hc_stream *stream);
bool hc_stream_wants_pass(const struct hc_stream *stream);
void hc_stream_done(struct hc_stream *stream);

#endif
