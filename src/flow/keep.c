#include "flow/keep.h"

#include "flow/request_document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES_MAX (64ull * 1024 * 1024) /* of all artifacts of a run */

int hc_keep_artifacts(struct hc_job *job, int working_folder)
{
    uint64_t left = KEPT_BYTES_MAX;
    for (size_t i = 0; i < job->collection.count; i++) {
        const struct hc_artifact *artifact = &job->collection.artifacts[i];
        struct hc_kept_file file = {.artifact = i};
        if (!artifact->plain || artifact->change == HC_DELETED || artifact->sha256[0] == '\0' ||
            artifact->bytes > left || (!artifact->exported && !(job->keep_all && artifact->collected)))
            continue;
        int error = hc_collect_read(working_folder, artifact->path, left, &file.data, &file.bytes);
        if (error == -ENOMEM)
            return error;
        if (error < 0)
            continue;
        struct hc_kept_file *grown = reallocarray(job->kept, job->kept_count + 1, sizeof *grown);
        if (grown == NULL) {
            free(file.data);
            return -ENOMEM;
        }
        job->kept = grown;
        job->kept[job->kept_count++] = file;
        left -= file.bytes;
    }
    return 0;
}

void hc_kept_done(struct hc_job *job)
{
    for (size_t i = 0; i < job->kept_count; i++)
        free(job->kept[i].data);
    free(job->kept);
    job->kept = NULL;
    job->kept_count = 0;
}

/* What can't be recorded did not happen as far as anybody can prove: the answer is a fault that says so. */
static json_t *not_kept(struct hc_job *job, int error, const char *message)
{
    job->verdict = (struct hc_verdict){
        .state = HC_STATE_FAULT, .status = HC_STATUS_FAULT, .cause = HC_CAUSE_HOST, .exit_code = -1};
    if (job->acceptance.status != HC_NOT_REQUESTED)
        job->acceptance.status = HC_ACCEPT_ERROR;
    job->outcome.failure = (struct hc_setup_failure){.stage = HC_STAGE_RECORD, .error = error};
    job->request_sha256[0] = '\0';
    (void)snprintf(job->refusal.message, sizeof job->refusal.message, "the record can't be stored: %s",
                   message[0] != '\0' ? message : strerror(-error));
    return hc_record_make(job);
}

json_t *hc_record_keep(struct hc_job *job, const json_t *predicates, struct hc_store *store)
{
    char message[256] = "";
    struct hc_request_blobs blobs = {0};
    if (store == NULL)
        return hc_record_make(job);
    int error = job->gated ? hc_request_document_make(job, predicates, &blobs) : 0;
    if (error == 0)
        (void)snprintf(job->request_sha256, sizeof job->request_sha256, "%s", blobs.sha256);
    json_t *record = error == 0 ? hc_record_make(job) : NULL;
    if (error == 0 && record == NULL)
        error = -ENOMEM;
    if (error == 0)
        error = hc_store_append_with(store, record, blobs.blobs, blobs.count, message);
    hc_request_blobs_done(&blobs);
    if (error == 0)
        return record;
    json_decref(record);
    return not_kept(job, error, message);
}
