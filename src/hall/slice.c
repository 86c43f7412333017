#include "hall/hall.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int hc_slice_folder(bool ordinary, char ret_path[HC_PATH_SIZE])
{
    struct hc_text path = {.data = ret_path, .size = HC_PATH_SIZE};
    hc_text_string(&path, HC_RUN_FOLDER);
    if (ordinary) {
        hc_text_string(&path, "/" HC_USER_FOLDER);
        hc_text_number(&path, getuid());
    }
    return hc_text_done(&path);
}

static int lock_slice(int folder, uint32_t slice, int *ret_lock)
{
    char buffer[32];
    struct hc_text name = HC_TEXT(buffer);
    hc_text_string(&name, "slice-");
    hc_text_number(&name, slice);
    hc_text_string(&name, ".lock");
    hc_autoclose int lock =
        (int)HC_SYS(openat(folder, buffer, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock < 0)
        return lock;
    int taken = (int)HC_SYS(flock(lock, LOCK_EX | LOCK_NB));
    if (taken < 0)
        return taken;
    *ret_lock = hc_take_fd(&lock);
    return 0;
}

int hc_slice_take(const struct hc_hall_config *config, bool ordinary, uint32_t *ret_slice, int *ret_lock,
                  struct hc_hall_failure *failure)
{
    char path[HC_PATH_SIZE];
    int error = hc_slice_folder(ordinary, path);
    hc_hall_detail(failure, HC_STAGE_HALL_SLICE, path);
    int made = error < 0 ? error : ordinary ? 0 : (int)HC_SYS(mkdir(path, 0755));
    if (made < 0 && made != -EEXIST)
        return made;
    hc_autoclose int folder = (int)HC_SYS(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder < 0)
        return folder;
    for (uint32_t slice = 0; slice < config->slice_count; slice++) {
        error = lock_slice(folder, slice, ret_lock);
        if (error == -EWOULDBLOCK)
            continue;
        if (error < 0)
            return error;
        *ret_slice = slice;
        return 0;
    }
    hc_hall_detail(failure, HC_STAGE_HALL_SLICE, "every slice of host ids is in use");
    return -EUSERS;
}

bool hc_slice_is_free(bool ordinary, uint32_t slice, int *ret_lock)
{
    char path[HC_PATH_SIZE];
    if (hc_slice_folder(ordinary, path) < 0)
        return false;
    hc_autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return folder >= 0 && lock_slice(folder, slice, ret_lock) == 0;
}
