/* Ranges of subordinate ids: whose they are, lines that can't be read, overlaps, slices. */
#include "flow/ordinary.h"

#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static const char *table(const char *text)
{
    (void)snprintf(path, sizeof path, "/tmp/hotcell-subids-XXXXXX");
    int fd = mkstemp(path);
    HC_ASSERT(fd >= 0);
    HC_ASSERT_EQ_INT(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static int find(const char *text, struct hc_id_range *ret_range, unsigned *ret_line)
{
    int found = hc_subids_find(table(text), "ada", 1000, ret_range, ret_line);
    (void)unlink(path);
    return found;
}

HC_TEST(found_by_name_and_by_number)
{
    struct hc_id_range range = {0};
    unsigned line = 0;
    static const char *const good[] = {"ada:100000:65536\n", "bob:1:2\nada:100000:65536",
                                       "1000:100000:65536\n",
                                       "ada:200000:256\nada:100000:65536\n1000:300000:65535\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        HC_ASSERT_EQ_INT(find(good[i], &range, &line), 1);
        HC_ASSERT_EQ_INT(range.first, 100000);
        HC_ASSERT_EQ_INT(range.count, 65536);
    }
}

HC_TEST(nobody_elses_is_taken)
{
    struct hc_id_range range = {0};
    unsigned line = 0;
    static const char *const others[] = {"",
                                         "adam:100000:65536\n",
                                         "ad:100000:65536\n",
                                         "10000:100000:65536\n",
                                         "bob:ada:1\n",
                                         "# ada:100000:65536\n",
                                         " ada:100000:65536\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        HC_ASSERT_EQ_INT(find(others[i], &range, &line), 0);
    HC_ASSERT_EQ_INT(hc_subids_find("/nonexistent/subuid", "ada", 1000, &range, &line), 0);
    /* A caller without a name in passwd is not the owner of lines that begin with nothing. */
    HC_ASSERT_EQ_INT(hc_subids_find(table(":100000:65536\n"), "", 1000, &range, &line), 0);
    (void)unlink(path);
}

HC_TEST(lines_that_cannot_be_read_are_named)
{
    static const char *const bad[] = {"ada",
                                      "ada:",
                                      "ada:100000",
                                      "ada:100000:",
                                      "ada::65536",
                                      "ada:-1:65536",
                                      "ada:+1:65536",
                                      "ada: 100000:65536",
                                      "ada:100000:65536 ",
                                      "ada:0x100:65536",
                                      "ada:100000:0",
                                      "ada:100000:65536:1",
                                      "ada:4294967296:1",
                                      "ada:99999999999:1",
                                      "ada:4294967295:1",
                                      "ada:4294901760:65536",
                                      "ada:1e5:65536"};
    struct hc_id_range range = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        unsigned line = 0;
        (void)snprintf(text, sizeof text, "bob:1:1\nnonsense\n%s\n", bad[i]);
        int found = find(text, &range, &line);
        if (found != -EBADMSG || line != 3)
            fprintf(stderr, "# %s: %d, line %u\n", bad[i], found, line);
        HC_ASSERT_EQ_INT(found, -EBADMSG);
        HC_ASSERT_EQ_INT(line, 3);
    }
}

static bool meets(const char *text, uint32_t first, uint32_t count)
{
    bool met = hc_subids_meet(table(text), "ada", 1000, (struct hc_id_range){first, count});
    (void)unlink(path);
    return met;
}

HC_TEST(overlaps_with_others)
{
    HC_ASSERT(!meets("bob:100000:65536\n", 165536, 65536));
    HC_ASSERT(!meets("bob:231072:65536\n", 165536, 65536));
    HC_ASSERT(meets("bob:100000:65537\n", 165536, 65536));
    HC_ASSERT(meets("x:1:1\nbob:231071:1\n", 165536, 65536));
    HC_ASSERT(meets("bob:0:4294967295\n", 165536, 1));
    HC_ASSERT(!meets("ada:100000:65536\n1000:100000:65536\n", 100000, 65536));
}

HC_TEST(overlaps_with_root)
{
    HC_ASSERT(!hc_range_meets_root((struct hc_id_range){100000, 65536}));
    HC_ASSERT(!hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE - 65536, 65536}));
    HC_ASSERT(hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE - 65536, 65537}));
    HC_ASSERT(hc_range_meets_root((struct hc_id_range){100000, 0x7fffffff}));
    HC_ASSERT(hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE + 32767, 1}));
    HC_ASSERT(!hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE + 32768, 65536}));
}

HC_TEST(slices_lie_at_the_end)
{
    struct hc_id_range slices = hc_slices_of((struct hc_id_range){100000, 65536});
    HC_ASSERT_EQ_INT(slices.count, HC_SLICES_MAX * HC_HALL_IDS);
    HC_ASSERT_EQ_INT(slices.first + slices.count, 165536);
    slices = hc_slices_of((struct hc_id_range){100000, 300});
    HC_ASSERT_EQ_INT(slices.count, 256);
    HC_ASSERT_EQ_INT(slices.first, 100044);
    HC_ASSERT_EQ_INT(hc_slices_of((struct hc_id_range){100000, 255}).count, 0);
}
