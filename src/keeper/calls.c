/* Notified system calls: copy what the table says, answer what the table says, tell the library.
 *
 * The caller's memory can change between our copy and the kernel's (the race of every notification
 * supervisor), so nothing here decides on what was copied: a call goes on where the namespaces are the
 * boundary anyway, and is refused by number and register arguments alone elsewhere. The copy is for the
 * record.
 */
#include "keeper/keeper.h"

#include "base/fault.h"
#include "notify_payload.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#define ADDRESS_MAX 128

static size_t copy_from(pid_t pid, uint64_t address, void *buffer, size_t bytes)
{
    struct iovec local = {buffer, bytes};
    struct iovec remote = {(void *)(uintptr_t)address, bytes};
    if (address == 0 || bytes == 0)
        return 0;
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    return n > 0 ? (size_t)n : 0;
}

/* A path may end anywhere before an unmapped page: page-wise pieces get what is there. */
static size_t copy_path(pid_t pid, uint64_t address, uint8_t *buffer, size_t size)
{
    size_t got = 0;
    while (got < size) {
        size_t piece = 4096 - ((address + got) & 4095);
        if (piece > size - got)
            piece = size - got;
        size_t n = copy_from(pid, address + got, buffer + got, piece);
        if (n == 0)
            break;
        if (memchr(buffer + got, '\0', n) != NULL)
            return (size_t)((uint8_t *)memchr(buffer + got, '\0', n) - buffer);
        got += n;
    }
    return got;
}

static size_t copy_address(pid_t pid, uint64_t address, uint64_t length, uint8_t *buffer)
{
    uint32_t bytes = (uint32_t)length;
    return copy_from(pid, address, buffer, bytes > ADDRESS_MAX ? ADDRESS_MAX : bytes);
}

/* Fills call->data. False when the call names nothing worth telling (a message on a connected socket). */
static bool describe(const struct seccomp_notif *notice, const struct hc_notify_rule *rule,
                     struct hc_call *call)
{
    pid_t pid = (pid_t)notice->pid;
    const uint64_t *args = call->args;
    struct msghdr header = {0};
    switch (rule->reads) {
    case HC_NOTIFY_READS_SOCKADDR_1:
        call->data_len = (uint32_t)copy_address(pid, args[1], args[2], call->data);
        return true;
    case HC_NOTIFY_READS_SOCKADDR_4:
        call->data_len = (uint32_t)copy_address(pid, args[4], args[5], call->data);
        return true;
    case HC_NOTIFY_READS_MSGHDR_1:
    case HC_NOTIFY_READS_MMSGHDR_1: /* the first message stands for all */
        if (copy_from(pid, args[1], &header, sizeof header) != sizeof header || header.msg_name == NULL)
            return false;
        call->data_len =
            (uint32_t)copy_address(pid, (uint64_t)(uintptr_t)header.msg_name, header.msg_namelen, call->data);
        return call->data_len > 0;
    case HC_NOTIFY_READS_PATH_0:
        call->data_len = (uint32_t)copy_path(pid, args[0], call->data, sizeof call->data);
        return true;
    case HC_NOTIFY_READS_PATH_1:
        call->data_len = (uint32_t)copy_path(pid, args[1], call->data, sizeof call->data);
        return true;
    default:
        return true;
    }
}

static void tell(struct hc_cell *cell, const struct hc_call *call)
{
    static struct hc_event event;
    if (cell->calls_forwarded >= cell->calls_max) {
        cell->calls_omitted++;
        return;
    }
    cell->calls_forwarded++;
    event.version = HC_WIRE_VERSION;
    event.kind = HC_EVENT_CALL;
    event.slot = cell->slot;
    event.u.call = *call;
    hc_keeper_send(&event, NULL, 0);
}

void hc_call_serve(struct hc_cell *cell)
{
    struct seccomp_notif notice = {0};
    struct seccomp_notif_resp answer = {0};
    struct hc_call call = {0};
    if (ioctl(cell->listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0)
        return;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    call.at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    call.nr = notice.data.nr;
    memcpy(call.args, notice.data.args, sizeof call.args);
    const struct hc_notify_rule *rule =
        hc_notify_find(hc_notify_payload, HC_NOTIFY_PAYLOAD_COUNT, call.nr, call.args);
    answer.id = notice.id;
    bool worth_telling = true;
    if (rule == NULL) {
        call.answer = -EPERM;
    } else {
        call.answer = -rule->answer_errno;
        call.reads = rule->reads;
        if (cell->calls_forwarded < cell->calls_max)
            worth_telling = describe(&notice, rule, &call);
    }
    /* The process may be gone and its number given to another one whose memory we have just read: then it
     * never was. */
    if (ioctl(cell->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &notice.id) != 0)
        return;
    if (call.answer == 0)
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
        answer.error = call.answer;
    if (worth_telling)
        tell(cell, &call);
    (void)ioctl(cell->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
