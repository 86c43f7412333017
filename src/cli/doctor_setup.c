#include "cli/cli.h"

#include "flow/engine.h"
#include "flow/grants.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *describe(const struct hc_grants *grants, const struct hc_setup_wish *wish, bool good)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < grants->count; i++) {
        const struct hc_grant *grant = &grants->items[i];
        (void)json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s}", "name", grant->name, "state",
                                                    hc_grant_state_name(grant->state), "lasts",
                                                    grant->until_reboot ? "until_reboot" : "for_good",
                                                    "detail", grant->detail));
    }
    return json_pack("{s:s, s:s, s:i, s:b, s:b, s:o}", "action", wish->setup != NULL ? "setup" : "undo",
                     "user", grants->user, "uid", (int)grants->uid, "dry_run", grants->dry_run, "good", good,
                     "grants", rows);
}

static void print_rows(const struct hc_grants *grants)
{
    bool colours = hc_colours(1);
    for (size_t i = 0; i < grants->count; i++) {
        const struct hc_grant *grant = &grants->items[i];
        const char *colour = !colours                           ? ""
                             : grant->state == HC_GRANT_FAILED  ? "\033[31m"
                             : grant->state == HC_GRANT_ALREADY ? ""
                                                                : "\033[32m";
        printf("  %s%-8s%s %-17s %s\n", colour, hc_grant_state_name(grant->state), colours ? "\033[0m" : "",
               grant->name, grant->detail);
    }
}

static void print_after_setup(const struct hc_grants *grants)
{
    printf("\n%s can make cells now: hotcell doctor, as that user, shows what holds.\n"
           "Cgroups, locks and the door are gone after a reboot: ",
           grants->user);
    if (grants->at_boot)
        printf("systemd repeats the set-up then.\n");
    else if (access("/run/systemd/system", F_OK) == 0)
        printf("repeat the set-up, or have systemd do it: hotcell doctor --setup %s --at-boot\n",
               grants->user);
    else
        printf("repeat the set-up, by hand or from what starts this host.\n");
}

int hc_cli_doctor_setup(const struct hc_setup_wish *wish)
{
    static struct hc_grants grants;
    char message[256];
    const char *user = wish->setup != NULL ? wish->setup : wish->undo;
    if (wish->setup != NULL && wish->undo != NULL) {
        hc_say("--setup and --undo don't go together");
        return 125;
    }
    if (!hc_grants_begin(&grants, user, message)) {
        hc_say("--%s: %s", wish->setup != NULL ? "setup" : "undo", message);
        return 125;
    }
    if (geteuid() != 0 && !wish->dry_run) {
        hc_say("--%s: only root can: sudo hotcell doctor --%s %s", wish->setup != NULL ? "setup" : "undo",
               wish->setup != NULL ? "setup" : "undo", grants.user);
        return 125;
    }
    (void)setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1); /* usermod and systemctl, and nobody else's */
    grants.programs = hc_default_programs();
    grants.dry_run = wish->dry_run;
    grants.at_boot = wish->at_boot;
    bool good = wish->setup != NULL ? hc_grants_make(&grants) : hc_grants_undo(&grants);
    if (wish->json) {
        json_t *report = describe(&grants, wish, good);
        (void)json_dumpf(report, stdout, JSON_INDENT(2));
        (void)putchar('\n');
        json_decref(report);
    } else {
        printf("%s for %s (%u)%s:\n", wish->setup != NULL ? "Set-up" : "Taking back the set-up", grants.user,
               (unsigned)grants.uid, grants.dry_run ? ", as it would be" : "");
        print_rows(&grants);
        if (good && wish->setup != NULL && !grants.dry_run)
            print_after_setup(&grants);
    }
    return good ? 0 : 1;
}
