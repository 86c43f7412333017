#include "flow/attempts.h"

#include "base/strings.h"
#include "base/utf8.h"
#include "notify_payload.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct described {
    const char *protocol;
    char address[160];
    long port; /* -1: none */
};

static void describe_unix(const struct hc_call *call, struct described *d)
{
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    const uint8_t *path = call->data + head;
    size_t n = call->data_len > head ? call->data_len - head : 0;
    bool abstract = n > 0 && path[0] == '\0';
    if (!abstract)
        n = strnlen((const char *)path, n);
    d->protocol = "unix";
    size_t at = 0;
    for (size_t i = 0; i < n && at + 5 < sizeof d->address; i++) {
        if (i == 0 && abstract)
            d->address[at++] = '@';
        else if (path[i] < 32 || path[i] > 126 || path[i] == '\\')
            at += (size_t)snprintf(d->address + at, 5, "\\x%02X", path[i]);
        else
            d->address[at++] = (char)path[i];
    }
    d->address[at] = '\0';
}

/* The socket's type is not in the call; connect is told as tcp, a message with an address as udp. */
static void describe_address(const struct hc_call *call, struct described *d)
{
    union {
        struct sockaddr_storage any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_vm vm;
    } address = {0};
    bool message = call->reads != HC_NOTIFY_READS_SOCKADDR_1;
    memcpy(&address, call->data, call->data_len < sizeof address ? call->data_len : sizeof address);
    *d = (struct described){.protocol = "other", .port = -1};
    if (call->data_len < sizeof(sa_family_t))
        return;
    switch (address.any.ss_family) {
    case AF_INET:
        d->protocol = message ? "udp" : "tcp";
        d->port = ntohs(address.v4.sin_port);
        (void)inet_ntop(AF_INET, &address.v4.sin_addr, d->address, sizeof d->address);
        break;
    case AF_INET6:
        d->protocol = message ? "udp" : "tcp";
        d->port = ntohs(address.v6.sin6_port);
        (void)inet_ntop(AF_INET6, &address.v6.sin6_addr, d->address, sizeof d->address);
        break;
    case AF_UNIX:
        describe_unix(call, d);
        break;
    case AF_NETLINK:
        d->protocol = "netlink";
        break;
    case AF_VSOCK:
        d->protocol = "vsock";
        d->port = address.vm.svm_port <= 65535 ? (long)address.vm.svm_port : -1;
        (void)snprintf(d->address, sizeof d->address, "cid:%u", address.vm.svm_cid);
        break;
    case AF_PACKET:
        d->protocol = "raw";
        break;
    default:
        (void)snprintf(d->address, sizeof d->address, "family:%u", address.any.ss_family);
    }
}

static uint64_t at_us(const struct hc_outcome *outcome, const struct hc_call *call)
{
    return call->at_ns > outcome->exec_at_ns ? (call->at_ns - outcome->exec_at_ns) / 1000 : 0;
}

static const struct hc_notify_rule *rule_of(const struct hc_call *call)
{
    return hc_notify_find(hc_notify_payload, HC_NOTIFY_PAYLOAD_COUNT, call->nr, call->args);
}

/* The cell's network is a loopback and nothing else: every other destination fails with ENETUNREACH, whatever
 * the call says. */
static bool within_cell(const struct hc_call *call)
{
    const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    sa_family_t family = AF_UNSPEC;
    if (call->data_len >= sizeof family)
        memcpy(&family, call->data, sizeof family);
    if (family == AF_INET && call->data_len >= sizeof v4) {
        memcpy(&v4, call->data, sizeof v4);
        uint32_t address = ntohl(v4.sin_addr.s_addr);
        return address == 0 || address >> 24 == 127;
    }
    if (family == AF_INET6 && call->data_len >= sizeof v6) {
        memcpy(&v6, call->data, sizeof v6);
        if (memcmp(&v6.sin6_addr, mapped, sizeof mapped) == 0)
            return v6.sin6_addr.s6_addr[12] == 127;
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
    }
    return family != AF_INET && family != AF_INET6;
}

static json_t *attempt(const struct hc_outcome *outcome, const struct hc_call *call, const char *name)
{
    struct described d;
    describe_address(call, &d);
    bool allowed = call->answer == 0 && within_cell(call);
    return json_pack(
        "{s:I, s:s, s:s, s:o, s:o, s:n, s:s, s:s}", "at_us", (json_int_t)at_us(outcome, call), "call", name,
        "protocol", d.protocol, "address", d.address[0] != '\0' ? json_string(d.address) : json_null(),
        "port", d.port >= 0 ? json_integer(d.port) : json_null(), "name", "decision",
        allowed ? "allowed" : "refused", "rule", call->answer == 0 ? "network_namespace" : "seccomp");
}

/* socket(family, type, protocol) that the filter refused is an attempt on the network too. */
static json_t *socket_attempt(const struct hc_outcome *outcome, const struct hc_call *call)
{
    char family[32];
    (void)snprintf(family, sizeof family, "family:%u", (unsigned)call->args[0]);
    unsigned number = (unsigned)call->args[0];
    return json_pack("{s:I, s:s, s:s, s:s, s:n, s:n, s:s, s:s}", "at_us", (json_int_t)at_us(outcome, call),
                     "call", "socket", "protocol",
                     number == AF_VSOCK     ? "vsock"
                     : number == AF_NETLINK ? "netlink"
                     : number == AF_PACKET  ? "raw"
                                            : "other",
                     "address", family, "port", "name", "decision", "refused", "rule", "seccomp");
}

static json_t *first_of(const struct hc_outcome *outcome, const struct hc_call *call)
{
    json_t *arguments = json_array();
    char text[24];
    for (int i = 0; i < 6; i++) {
        (void)snprintf(text, sizeof text, "0x%" PRIx64, call->args[i]);
        (void)json_array_append_new(arguments, json_string(text));
    }
    bool has_path = (call->reads == HC_NOTIFY_READS_PATH_0 || call->reads == HC_NOTIFY_READS_PATH_1) &&
                    call->data_len > 0;
    char path[4 * HC_CALL_DATA + 1];
    size_t at = 0;
    for (uint32_t i = 0; has_path && i < call->data_len; i++)
        at += (size_t)snprintf(path + at, 5,
                               call->data[i] < 32 || call->data[i] > 126 || call->data[i] == '\\' ? "\\x%02X"
                                                                                                  : "%c",
                               call->data[i]);
    return json_pack("{s:I, s:o, s:o}", "at_us", (json_int_t)at_us(outcome, call), "arguments", arguments,
                     "path", has_path ? json_stringn(path, at) : json_null());
}

static void count_denied(const struct hc_outcome *outcome, const struct hc_call *call, const char *name,
                         json_t *denied)
{
    size_t i;
    json_t *row;
    json_array_foreach(denied, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) != 0)
            continue;
        json_t *count = json_object_get(row, "count");
        (void)json_integer_set(count, json_integer_value(count) + 1);
        return;
    }
    (void)json_array_append_new(
        denied, json_pack("{s:s, s:i, s:o}", "name", name, "count", 1, "first", first_of(outcome, call)));
}

static bool on_network(uint32_t reads)
{
    return reads >= HC_NOTIFY_READS_SOCKADDR_1 && reads <= HC_NOTIFY_READS_MMSGHDR_1;
}

void hc_attempts_split(const struct hc_outcome *outcome, json_t **ret_attempts, json_t **ret_denied)
{
    *ret_attempts = json_array();
    *ret_denied = json_array();
    for (size_t i = 0; i < outcome->call_count; i++) {
        const struct hc_call *call = &outcome->calls[i];
        const struct hc_notify_rule *rule = rule_of(call);
        const char *name = rule != NULL ? rule->name : "unknown";
        if (on_network(call->reads))
            (void)json_array_append_new(*ret_attempts, attempt(outcome, call, name));
        else if (strcmp(name, "socket") == 0)
            (void)json_array_append_new(*ret_attempts, socket_attempt(outcome, call));
        if (call->answer != 0)
            count_denied(outcome, call, name, *ret_denied);
    }
}
