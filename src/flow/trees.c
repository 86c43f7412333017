#include "flow/trees.h"

#include "cell/wire.h"

#include <stdio.h>
#include <string.h>

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

/* One line of mountinfo: 36 35 98:0 /root /mount/point options ... - type source superoptions */
static bool take_line(const char *line, struct hc_tree *ret_tree)
{
    char type[32], options[512];
    const char *tail = strstr(line, " - ");
    memset(ret_tree, 0, sizeof *ret_tree);
    if (tail == NULL || sscanf(line, "%*s %*s %*s %*s %255s", ret_tree->mount) != 1 ||
        sscanf(tail + 3, "%31s %*s %511s", type, options) != 2 || strchr(ret_tree->mount, '\\') != NULL)
        return false;
    ret_tree->v2 = strcmp(type, "cgroup2") == 0;
    ret_tree->cpu = has_word(options, "cpu");
    return ret_tree->v2 ||
           (strcmp(type, "cgroup") == 0 && (ret_tree->cpu || has_word(options, "memory") ||
                                            has_word(options, "pids") || has_word(options, "cpuacct")));
}

size_t hc_trees_find(struct hc_tree trees[HC_TREES_MAX])
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    size_t count = 0;
    bool v2 = false;
    while (table != NULL && count < HC_TREES_MAX && fgets(line, sizeof line, table) != NULL) {
        struct hc_tree tree;
        if (!take_line(line, &tree) || (tree.v2 && v2))
            continue;
        v2 = v2 || tree.v2;
        trees[count++] = tree;
    }
    if (table != NULL)
        (void)fclose(table);
    return count;
}

void hc_tree_user_folder(const struct hc_tree *tree, uid_t uid, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/" HC_CGROUP_HOME "/" HC_USER_FOLDER "%u", tree->mount, (unsigned)uid);
}
