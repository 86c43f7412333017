/* Looking into the files that a run left: what signatures tell is seen here, archives are looked into by
 * hotcell-scan in a cell of its own, as their formats are too complicated to be parsed in our process. */
#ifndef HC_FLOW_SCAN_H
#define HC_FLOW_SCAN_H

#include "cell/plan.h"
#include "flow/findings.h"

#define HC_SCAN_PROGRAM "hotcell-scan"

/* The archives that have to be looked into, as files of a plan called 0, 1, …, after the scanner itself. */
struct hc_scan {
    struct hc_plan_file *files; /* [0] is the scanner */
    struct hc_artifact **artifacts;
    size_t count; /* of artifacts; files has one more */
    uint64_t bytes;
};

/* Looks at the heads and texts of all collected files, and gathers archives. 0 or negative errno. */
int hc_scan_begin(int working_folder, struct hc_collection *collection, struct hc_scan *ret_scan);
/* Reads the scanner from the folder of our programs: negative errno when it is not there. */
int hc_scan_load_program(struct hc_scan *scan, const char *programs);
/* Adds what the scanner printed to the findings. Every archive without a whole report is `not_inspected`;
 * output NULL: none has one. */
void hc_scan_report(struct hc_scan *scan, const char *output, size_t n);
void hc_scan_done(struct hc_scan *scan);

#endif
