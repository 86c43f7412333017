#include "cli/cli.h"

#include "flow/engine.h"
#include "flow/host.h"
#include "flow/ordinary.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct hc_option hc_doctor_options[] = {
    {"json", 0, NULL, "print one JSON document"},
    {"setup", 0, "USER", "as root: grant USER what making cells needs"},
    {"undo", 0, "USER", "as root: take back what --setup granted"},
    {"at-boot", 0, NULL, "with --setup: have systemd repeat it at every start of the host"},
    {"dry-run", 0, NULL, "with --setup or --undo: only say what would be done"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_doctor_option_count = sizeof hc_doctor_options / sizeof *hc_doctor_options;

/* A real cell with a real program in it, asking for everything and tolerating anything: the whole chain is
 * probed, not single flags, since a namespace that can be made may still be useless (AppArmor, covered
 * /proc). */
static int try_cell(struct hc_job *job)
{
    struct hc_engine *engine = NULL;
    struct hc_engine_options options = {.only_language = "bash"};
    struct hc_problem problem = {0};
    static const char code[] = "exit 0\n";
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        options.allow_layers |= hc_layers[i].removable ? 1ull << i : 0;
    hc_job_begin(job);
    int error = hc_spec_init(&job->spec);
    job->spec.min_grade = HC_GRADE_D;
    job->spec.language = strdup("bash");
    job->spec.code = (uint8_t *)strdup(code);
    job->spec.code_bytes = sizeof code - 1;
    job->spec.code_given = true;
    if (error == 0)
        error = hc_engine_open(&options, &engine, &problem);
    if (error == 0)
        error = hc_engine_run(engine, job, NULL, NULL, NULL);
    hc_engine_close(engine);
    return error;
}

static json_t *layer_row(const struct hc_job *job, int layer)
{
    const struct hc_layer_result *result = &job->outcome.layers.layers[layer];
    bool holds = result->state == HC_LAYER_APPLIED;
    return json_pack("{s:s, s:b, s:b, s:s, s:o, s:o}", "name", hc_layers[layer].name, "works", holds,
                     "primary", hc_layers[layer].primary, "evidence", result->evidence, "grade_without",
                     holds ? json_null() : json_string(hc_grade_name(hc_layers[layer].grade_if_absent)),
                     "mend", holds ? json_null() : json_string(hc_layers[layer].mend));
}

/* What an ordinary user's cells live on; root needs none of it. */
static json_t *user_rows(void)
{
    struct hc_ordinary ordinary;
    json_t *rows = json_array();
    if (geteuid() == 0)
        return rows;
    hc_ordinary_examine(geteuid(), &ordinary);
    for (int i = 0; i < HC_NEED_COUNT; i++) {
        char mend[160];
        (void)snprintf(mend, sizeof mend, "%s%s",
                       i == HC_NEED_MAPPERS ? "apt-get install uidmap" : "sudo hotcell doctor --setup ",
                       i == HC_NEED_MAPPERS ? "" : ordinary.user);
        (void)json_array_append_new(rows,
                                    json_pack("{s:s, s:b, s:s, s:o}", "name", hc_need_names[i], "works",
                                              ordinary.there[i], "evidence", ordinary.evidence[i], "mend",
                                              ordinary.there[i] ? json_null() : json_string(mend)));
    }
    return rows;
}

static json_t *examine(const struct hc_job *job)
{
    bool ran = job->outcome.started == HC_STARTED;
    json_t *layers = json_array(), *host = json_array();
    for (int i = 0; ran && i < HC_LAYER_COUNT; i++)
        (void)json_array_append_new(layers, layer_row(job, i));
    for (size_t i = 0; i < hc_host_check_count; i++) {
        const struct hc_host_check *check = &hc_host_checks[i];
        char value[256] = "";
        enum hc_host_state state = check->probe(value, sizeof value);
        bool good = state == HC_HOST_GOOD;
        (void)json_array_append_new(
            host, json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "name", check->name, "state",
                            hc_host_state_name(state), "value", value, "matters", check->matters, "costs",
                            good || check->costs == NULL ? json_null() : json_string(check->costs), "mend",
                            good || check->mend == NULL ? json_null() : json_string(check->mend)));
    }
    return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o}", "cells_work",
                     ran && job->verdict.status == HC_STATUS_OK, "grade",
                     ran ? json_string(hc_grade_name(job->outcome.layers.grade)) : json_null(), "refusal",
                     ran ? json_null() : json_string(job->refusal.message), "layers", layers, "user",
                     user_rows(), "host", host);
}

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text != NULL ? text : "";
}

static void print_report(const json_t *report)
{
    size_t i;
    json_t *row;
    bool colours = hc_colours(1);
    const char *green = colours ? "\033[32m" : "", *red = colours ? "\033[31m" : "",
               *off = colours ? "\033[0m" : "";
    if (json_is_true(json_object_get(report, "cells_work")))
        printf("%sCells work here, grade %s.%s\n\nLayers of a cell, as the kernel shows them:\n", green,
               text_of(report, "grade"), off);
    else
        printf("%sNo cell can be made here:%s %s\n", red, off, text_of(report, "refusal"));
    json_array_foreach(json_object_get(report, "layers"), i, row)
    {
        bool works = json_is_true(json_object_get(row, "works"));
        printf("  %s%-8s%s %-22s %s\n", works ? green : red, works ? "works" : "missing", off,
               text_of(row, "name"), text_of(row, "evidence"));
        if (!works)
            printf("           without it grade %s; to get it: %s\n", text_of(row, "grade_without"),
                   text_of(row, "mend"));
    }
    if (json_array_size(json_object_get(report, "user")) > 0)
        printf("\nWhat an ordinary user needs:\n");
    json_array_foreach(json_object_get(report, "user"), i, row)
    {
        bool works = json_is_true(json_object_get(row, "works"));
        printf("  %s%-8s%s %-22s %s\n", works ? green : red, works ? "there" : "missing", off,
               text_of(row, "name"), text_of(row, "evidence"));
        if (!works)
            printf("           to mend it: %s\n", text_of(row, "mend"));
    }
    printf("\nThe host:\n");
    json_array_foreach(json_object_get(report, "host"), i, row)
    {
        bool good = strcmp(text_of(row, "state"), "good") == 0;
        printf("  %s%-8s%s %-22s %s\n", good ? green : red, text_of(row, "state"), off, text_of(row, "name"),
               text_of(row, "value"));
        if (!good)
            printf("           %s%s%s%s%s\n", text_of(row, "matters"),
                   text_of(row, "costs")[0] != '\0' ? "; costs " : "", text_of(row, "costs"),
                   text_of(row, "mend")[0] != '\0' ? "; to mend it: " : "", text_of(row, "mend"));
    }
}

static void take_option(struct hc_setup_wish *wish, const char *name, const char *value)
{
    if (strcmp(name, "setup") == 0)
        wish->setup = value;
    else if (strcmp(name, "undo") == 0)
        wish->undo = value;
    wish->json = wish->json || strcmp(name, "json") == 0;
    wish->at_boot = wish->at_boot || strcmp(name, "at-boot") == 0;
    wish->dry_run = wish->dry_run || strcmp(name, "dry-run") == 0;
}

static int diagnose_host(bool json)
{
    struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL || try_cell(job) < 0)
        return 125;
    json_t *report = examine(job);
    bool works = json_is_true(json_object_get(report, "cells_work"));
    if (json) {
        (void)json_dumpf(report, stdout, JSON_INDENT(2));
        (void)putchar('\n');
    } else {
        print_report(report);
    }
    json_decref(report);
    hc_job_done(job);
    free(job);
    return works ? 0 : 1;
}

int hc_cli_doctor(int argc, char **argv)
{
    const struct hc_command *command = hc_command_named("doctor");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    char message[256];
    struct hc_setup_wish wish = {0};
    for (int option; (option = hc_option_next(command, &arguments, &value, message)) != HC_OPTION_END;) {
        if (option < 0) {
            hc_say("%s", option == HC_OPTION_BAD ? message : "doctor takes no operands");
            return 125;
        }
        const char *name = command->options[option].name;
        if (strcmp(name, "help") == 0) {
            hc_print_help(command);
            return 0;
        }
        take_option(&wish, name, value);
    }
    if (wish.setup != NULL || wish.undo != NULL)
        return hc_cli_doctor_setup(&wish);
    if (wish.at_boot || wish.dry_run) {
        hc_say("--%s: goes with --setup or --undo", wish.at_boot ? "at-boot" : "dry-run");
        return 125;
    }
    return diagnose_host(wish.json);
}
