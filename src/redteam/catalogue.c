#include "redteam/catalogue.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cell/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const boundaries[] = {"files",     "network", "resources", "identity",
                                         "lifecycle", "output",  "control",   NULL};
static const char *const row_words[] = {
    "id",     "boundary", "title", "language",     "program",           "limits",
    "expect", "options",  "needs", "not_promised", "not_promised_warm", NULL};
static const char *const business_words[] = {"id", "title", "language", "program", "accept", NULL};
static const char *const expect_words[] = {"statuses", "hit",       "attempt", "denied",
                                           "silent",   "exit_code", NULL};

static bool listed(const char *const *words, const char *word)
{
    for (; *words != NULL; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static int wrong(const struct hc_yaml *yaml, struct hc_problem *problem, const char *list, size_t i,
                 const char *word, const char *what)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/%s/%zu/%.40s", list, i, word);
    return hc_yaml_problem(yaml, path, problem, "%s", what);
}

static int check_row(const struct hc_yaml *yaml, const char *list, size_t i, json_t *row, bool business,
                     struct hc_problem *problem)
{
    const char *word;
    json_t *value;
    if (!json_is_object(row))
        return wrong(yaml, problem, list, i, "", "a row is a mapping");
    json_object_foreach(row, word, value)
    {
        if (!listed(business ? business_words : row_words, word))
            return wrong(yaml, problem, list, i, word, "unknown word");
    }
    static const char *const texts[] = {"id", "title", "program"};
    for (size_t t = 0; t < 3; t++)
        if (!json_is_string(json_object_get(row, texts[t])))
            return wrong(yaml, problem, list, i, texts[t], "a text is wanted");
    const char *boundary = json_string_value(json_object_get(row, "boundary"));
    if (!business && (boundary == NULL || !listed(boundaries, boundary)))
        return wrong(yaml, problem, list, i, "boundary",
                     "files, network, resources, identity, lifecycle, output or control");
    json_object_foreach(json_object_get(row, "expect"), word, value)
    {
        if (!listed(expect_words, word))
            return wrong(yaml, problem, list, i, "expect", "unknown word in expect");
    }
    const char *hit = json_string_value(json_object_get(json_object_get(row, "expect"), "hit"));
    if (hit != NULL && hc_limit_by_name(hit) < 0)
        return wrong(yaml, problem, list, i, "expect", "hit: no such limit");
    return 0;
}

int hc_catalogue_read(const char *share, json_t **ret_catalogue, struct hc_problem *problem)
{
    hc_autofree char *path = hc_printf("%s/redteam/catalogue.yaml", share);
    size_t n = 0, i;
    hc_autofree char *data = path != NULL ? hc_read_whole(path, &n) : NULL;
    struct hc_yaml yaml = {0};
    json_t *row;
    if (data == NULL)
        return path == NULL ? -ENOMEM : -ENOENT;
    int error = hc_yaml_read(data, n, &yaml, problem);
    static const char *const lists[] = {"rows", "business"};
    for (int list = 0; error == 0 && list < 2; list++)
        json_array_foreach(json_object_get(yaml.root, lists[list]), i, row)
        {
            if (error == 0)
                error = check_row(&yaml, lists[list], i, row, list == 1, problem);
        }

    if (error == 0)
        *ret_catalogue = json_incref(yaml.root);
    if (error == HC_BAD_INPUT)
        hc_problem_file(problem, path);
    hc_yaml_done(&yaml);
    return error;
}
