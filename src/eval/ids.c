#include "eval/ids.h"

#include "base/sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int key_of(const char *id, size_t bytes, uint64_t key[2])
{
    char hex[65];
    int error = hc_sha256_hex(id, bytes, hex);
    if (error < 0)
        return error;
    hex[32] = '\0';
    key[1] = strtoull(hex + 16, NULL, 16);
    hex[16] = '\0';
    key[0] = strtoull(hex, NULL, 16) | 1; /* never the empty slot */
    return 0;
}

static uint64_t *find(uint64_t (*slots)[2], size_t room, const uint64_t key[2])
{
    size_t at = (size_t)key[1] & (room - 1);
    while (slots[at][0] != 0 && (slots[at][0] != key[0] || slots[at][1] != key[1]))
        at = (at + 1) & (room - 1);
    return slots[at];
}

static int grow(struct hc_ids *ids)
{
    size_t room = ids->room > 0 ? 2 * ids->room : 1024;
    uint64_t(*slots)[2] = calloc(room, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < ids->room; i++)
        if (ids->slots[i][0] != 0)
            memcpy(find(slots, room, ids->slots[i]), ids->slots[i], sizeof *slots);
    free(ids->slots);
    ids->slots = slots;
    ids->room = room;
    return 0;
}

int hc_ids_add(struct hc_ids *ids, const char *id, size_t bytes)
{
    uint64_t key[2];
    int error = key_of(id, bytes, key);
    if (error == 0 && ids->count * 3 >= ids->room * 2)
        error = grow(ids);
    if (error < 0)
        return error;
    uint64_t *slot = find(ids->slots, ids->room, key);
    if (slot[0] != 0)
        return HC_IDS_THERE;
    memcpy(slot, key, sizeof key);
    ids->count++;
    return HC_IDS_ADDED;
}

int hc_ids_has(const struct hc_ids *ids, const char *id, size_t bytes)
{
    uint64_t key[2];
    int error = ids->count > 0 ? key_of(id, bytes, key) : 0;
    if (error < 0 || ids->count == 0)
        return error;
    return find(ids->slots, ids->room, key)[0] != 0 ? HC_IDS_THERE : 0;
}

void hc_ids_done(struct hc_ids *ids)
{
    free(ids->slots);
    *ids = (struct hc_ids){0};
}
