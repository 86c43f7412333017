/* Ranges of subordinate ids: read strictly, nobody else's touched. */
#include "flow/ordinary.h"
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *file_with(const char *text)
{
    static char path[64];
    (void)snprintf(path, sizeof path, "/tmp/hotcell-subids-XXXXXX");
    int fd = mkstemp(path);
    HC_ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    return path;
}

static int find(const char *text, struct hc_id_range *range, unsigned *line)
{
    const char *path = file_with(text);
    int found = hc_subids_find(path, "ann", 1000, range, line);
    (void)unlink(path);
    return found;
}

HC_TEST(ranges_are_found_by_name_and_by_number)
{
    struct hc_id_range range = {0};
    unsigned line = 0;
    HC_ASSERT_EQ_INT(find("bob:1:2\nann:100000:65536\n", &range, &line), 1);
    HC_ASSERT_EQ_INT(range.first, 100000);
    HC_ASSERT_EQ_INT(range.count, 65536);
    HC_ASSERT_EQ_INT(find("1000:200000:300", &range, &line), 1);
    HC_ASSERT_EQ_INT(range.first, 200000);
    HC_ASSERT_EQ_INT(find("ann:1:10\nann:500:4000\n1000:9000:300\n", &range, &line), 1);
    HC_ASSERT_EQ_INT(range.first, 500); /* the largest */
    HC_ASSERT_EQ_INT(range.count, 4000);
}

HC_TEST(others_are_no_business_of_ours)
{
    struct hc_id_range range = {0};
    unsigned line = 0;
    HC_ASSERT_EQ_INT(find("", &range, &line), 0);
    HC_ASSERT_EQ_INT(
        find("anna:1:2\nan:1:2\n10001:1:2\n100:1:2\n# ann:1:2\n\n:1:2\nbob:x\nbob\n", &range, &line), 0);
    HC_ASSERT_EQ_INT(hc_subids_find("/nonexistent/subuid", "ann", 1000, &range, &line), 0);
}

HC_TEST(a_line_of_ours_that_is_wrong_is_an_error_with_its_number)
{
    static const char *const wrong[] = {
        "ann:",
        "ann::",
        "ann:1",
        "ann:1:",
        "ann::5",
        "ann:-1:5",
        "ann:+1:5",
        "ann: 1:5",
        "ann:1:5 ",
        "ann:1:5:6",
        "ann:0x10:5",
        "ann:1:0",
        "ann:4294967296:1",
        "ann:4294967000:1000",
        "ann:99999999999999999999:1",
        "ann:1:1e3",
        "1000:a:b",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct hc_id_range range = {0};
        unsigned line = 0;
        char text[128];
        (void)snprintf(text, sizeof text, "bob:1:2\nann:100000:65536\n%s\n", wrong[i]);
        HC_ASSERT_EQ_INT(find(text, &range, &line), -EBADMSG);
        HC_ASSERT_EQ_INT(line, 3);
    }
}

HC_TEST(overlaps_with_others_are_seen)
{
    const char *path = file_with("ann:100000:65536\nbob:165536:65536\ncid:4294900000:60000\n");
    static const struct {
        uint32_t first, count;
        bool meets;
    } rows[] = {{100000, 65536, false},  {100000, 65537, true}, {231071, 1, true},
                {231072, 65536, false},  {165535, 1, false},    {4294959999u, 10, true},
                {4294960000u, 10, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hc_id_range range = {rows[i].first, rows[i].count};
        HC_ASSERT_EQ_INT(hc_subids_meet(path, "ann", 1000, range), rows[i].meets);
    }
    (void)unlink(path);
}

HC_TEST(slices_are_the_end_of_a_range)
{
    struct hc_id_range slices = hc_slices_of((struct hc_id_range){100000, 65536});
    HC_ASSERT_EQ_INT(slices.first, 132768);
    HC_ASSERT_EQ_INT(slices.count, 32768);
    slices = hc_slices_of((struct hc_id_range){100000, 600});
    HC_ASSERT_EQ_INT(slices.first, 100088);
    HC_ASSERT_EQ_INT(slices.count, 512);
    HC_ASSERT_EQ_INT(hc_slices_of((struct hc_id_range){100000, 255}).count, 0);
}

HC_TEST(overlaps_with_root_are_seen)
{
    HC_ASSERT(!hc_range_meets_root((struct hc_id_range){100000, 65536}));
    HC_ASSERT(!hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE - 65536, 65536}));
    HC_ASSERT(hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE - 65536, 65537}));
    HC_ASSERT(hc_range_meets_root((struct hc_id_range){100000, 0x7fffffff}));
    HC_ASSERT(hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE + 32767, 1}));
    HC_ASSERT(!hc_range_meets_root((struct hc_id_range){HC_ROOT_ID_BASE + 32768, 65536}));
}

/* A caller without a name in passwd does not own lines that begin with nothing. */
HC_TEST(a_caller_without_a_name)
{
    struct hc_id_range range = {0};
    unsigned line = 0;
    const char *path = file_with(":100000:65536\n");
    HC_ASSERT_EQ_INT(hc_subids_find(path, "", 1000, &range, &line), 0);
    (void)unlink(path);
}
