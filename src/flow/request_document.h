/* What a run was given, as one document: enough to run it again. Its digest is request.sha256 of the record,
 * and the store keeps it as a blob beside the blobs that it names.
 *
 * A new field of struct hc_spec belongs here too, or a replay runs without it; test_request_document says so.
 */
#ifndef HC_FLOW_REQUEST_DOCUMENT_H
#define HC_FLOW_REQUEST_DOCUMENT_H

#include "flow/job.h"
#include "store/store.h"

/* The document of a job whose request was settled, and the blobs it needs, which borrow the job's memory but
 * for the last one, the document itself: ret_text, which the caller frees. *ret_blobs: freed by the caller.
 */
struct hc_request_blobs {
    char *text;
    char sha256[65];
    struct hc_blob *blobs;
    size_t count;
};
int hc_request_document_make(const struct hc_job *job, const json_t *predicates,
                             struct hc_request_blobs *ret);
void hc_request_blobs_done(struct hc_request_blobs *blobs);

/* From a document back to a request. `read` gives blobs: 0, HC_STORE_ABSENT or negative errno, new memory.
 * HC_REFUSED: something is missing, or this version does not know a field; `refusal` says which.
 * ret_predicates may be NULL inside when there were none. */
typedef int hc_blob_reader(void *context, const char *sha256, void **ret_data, size_t *ret_bytes);
int hc_request_document_read(const json_t *document, hc_blob_reader *read, void *context,
                             struct hc_spec *ret_spec, json_t **ret_predicates, struct hc_refusal *refusal);

/* What of the host is not in the record but may change a result: {kernel, machine, cpus, program}. */
json_t *hc_request_host(void);

#endif
