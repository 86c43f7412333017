#include "flow/stream.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

int hc_stream_init(struct hc_stream *stream, int pipe, int live, bool visible, uint64_t keep_bytes)
{
    memset(stream, 0, sizeof *stream);
    stream->pipe = pipe;
    stream->live = live;
    stream->visible = visible;
    int error = hc_capture_init(&stream->capture, keep_bytes);
    if (error < 0)
        return error;
    if (live >= 0) {
        stream->pending = malloc(8 * (HC_STREAM_CHUNK + 8));
        if (stream->pending == NULL)
            return -ENOMEM;
    }
    return fcntl(pipe, F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

static void put_live(struct hc_stream *stream, const uint8_t *data, size_t n)
{
    stream->pending_at = 0;
    if (stream->visible) {
        stream->pending_bytes =
            hc_visible_feed(&stream->escape, data, n, stream->pending, 8 * (HC_STREAM_CHUNK + 8));
    } else {
        memcpy(stream->pending, data, n);
        stream->pending_bytes = n;
    }
}

int hc_stream_read(struct hc_stream *stream)
{
    static __thread uint8_t chunk[HC_STREAM_CHUNK];
    ssize_t n = read(stream->pipe, chunk, sizeof chunk);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0) {
        hc_close_fd(&stream->pipe);
        stream->pending_at = 0;
        stream->pending_bytes = 0; /* all of it was passed, or we would not have read on */
        if (stream->live >= 0 && stream->visible)
            stream->pending_bytes = hc_visible_finish(&stream->escape, stream->pending, 8 * HC_STREAM_CHUNK);
        return 0;
    }
    if (stream->live >= 0)
        put_live(stream, chunk, (size_t)n);
    return hc_capture_write(&stream->capture, chunk, (size_t)n);
}

void hc_stream_pass(struct hc_stream *stream)
{
    /* A write of at most PIPE_BUF bytes to a pipe that is ready does not block, whatever its flags. */
    size_t left = stream->pending_bytes - stream->pending_at;
    ssize_t n = write(stream->live, stream->pending + stream->pending_at, left < PIPE_BUF ? left : PIPE_BUF);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) { /* nobody reads any more: the run goes on, its record is whole */
        stream->live = -1;
        stream->pending_bytes = stream->pending_at = 0;
        return;
    }
    stream->pending_at += (size_t)n;
}

bool hc_stream_wants_pass(const struct hc_stream *stream)
{
    return stream->live >= 0 && stream->pending_at < stream->pending_bytes;
}

bool hc_stream_wants_read(const struct hc_stream *stream)
{
    return stream->pipe >= 0 && !hc_stream_wants_pass(stream);
}

void hc_stream_done(struct hc_stream *stream)
{
    hc_close_fd(&stream->pipe);
    hc_capture_done(&stream->capture);
    free(stream->pending);
    stream->pending = NULL;
}
