/* What the programs say to each other: fixed-size messages over seqpacket sockets, and the plan of a cell.
 *
 *   hotcell (library) --hall config, sealed memfd--> hotcell-hall
 *   hotcell (library) <--hc_request / hc_event, seqpacket--> hotcell-keeper
 *   hotcell-keeper    <--hc_init_order / hc_init_report, seqpacket--> hotcell-init
 *   hotcell-init      --hc_end_report, seqpacket--> hotcell (library)
 *   hotcell (library) --plan, sealed memfd--> hotcell-init
 *   hotcell-keeper    <--hc_warm_order / hc_warm_report, seqpacket--> warm host, and a payload that it made
 *   hotcell-init      --hc_warm_start, seqpacket--> a payload that waits in its cell
 *
 * Same machine, same build: native byte order, structs checked by size. No message holds a length that the
 * reader has to trust: arrays are fixed, offsets of the plan are checked against the size of the memfd.
 */
#ifndef HC_CELL_WIRE_H
#define HC_CELL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define HC_WIRE_VERSION 4

/* Ids inside the hall (256 of them, mapped to one slice of host ids). */
#define HC_HALL_IDS 256

/* Host ids of root's halls: above the ranges that container managers take from (systemd-nspawn ends at
 * 0x6fffffff) and below 2^31, which some tools read as a sign. */
#define HC_ROOT_ID_BASE          0x70000000u
#define HC_CELL_MAX              64 /* cells alive at once in one hall */
#define HC_HOST_MAX              4  /* warm hosts in one hall */
#define HC_HOST_ID(host)         (2u + (host))
#define HC_CELL_INIT_ID(slot)    (32u + 2u * (slot))
#define HC_CELL_PAYLOAD_ID(slot) (33u + 2u * (slot))

/* Ids inside a cell. */
#define HC_INSIDE_INIT_ID    0u
#define HC_INSIDE_PAYLOAD_ID 1000u

/* Descriptors that are at fixed places when a program of ours starts. */
#define HC_FD_HALL_CONFIG 3
#define HC_FD_HALL_SOCKET 4
#define HC_FD_INIT_SOCKET 3

/* Where halls hold the locks of their slices and, for an ordinary user, where the door is. */
#define HC_RUN_FOLDER  "/run/hotcell"
#define HC_USER_FOLDER "user-" /* below it and in every cgroup tree: this and the user's number */
#define HC_DOOR_SOCKET "door"
#define HC_CGROUP_HOME "hotcell" /* at the top of every cgroup tree */
#define HC_CGROUP_DOOR "door"    /* in a user's part of the cgroup2 tree: where hotcell-door lives */

/* ---- library -> hotcell-door: the three descriptors of enum hc_door_fd with one request ---- */

enum hc_door_fd { HC_DOOR_PROGRAM, HC_DOOR_CONFIG, HC_DOOR_KEEPER_SOCKET, HC_DOOR_FDS };

struct hc_door_request {
    uint32_t version;
    uint32_t size;
};

struct hc_door_answer { /* descriptor: a pidfd of hotcell-hall, unless error */
    uint32_t version;
    int32_t error;
    int32_t pid;
    uint32_t reserved;
};

/* ---- hall configuration ---- */

#define HC_BIND_MAX       64
#define HC_COPY_BYTES_MAX (1024u * 1024)
#define HC_PATH_SIZE      256

enum hc_bind_flag {
    HC_BIND_OPTIONAL = 1, /* a missing source is left out */
    HC_BIND_COPY = 2, /* a small file of ours: copied, since mountinfo would show where a bind came from */
};

struct hc_bind {
    char source[HC_PATH_SIZE];
    char target[HC_PATH_SIZE]; /* absolute, inside the cell */
    uint32_t flags;
};

struct hc_hall_config {
    uint32_t version;
    uint32_t size; /* of this struct */
    uint32_t bind_count;
    uint32_t ceiling_processes;
    uint64_t ceiling_memory_bytes;
    uint64_t allow_layers; /* bit per enum hc_layer whose absence was accepted by name */
    uint64_t id_base;      /* first host user id of all slices; 0: the built-in range (root only) */
    uint32_t slice_count;
    uint32_t fault_program; /* test builds: which program fails its nth guarded call */
    uint32_t fault_nth;
    uint32_t gid_base; /* likewise of group ids; 0: as id_base */
    char keeper_path[HC_PATH_SIZE];
    char init_path[HC_PATH_SIZE];
    struct hc_bind binds[HC_BIND_MAX];
};

enum hc_fault_program { HC_FAULT_NONE, HC_FAULT_HALL, HC_FAULT_KEEPER, HC_FAULT_INIT, HC_FAULT_LIBRARY };

/* What the hall tells the keeper; inherited at fixed descriptors after exec. */
enum hc_controller {
    HC_CONTROLLER_V2,      /* the cgroup2 tree: kill, events, and on v2 hosts every controller */
    HC_CONTROLLER_MEMORY,  /* v1 */
    HC_CONTROLLER_PIDS,    /* v1 */
    HC_CONTROLLER_CPU,     /* v1 */
    HC_CONTROLLER_CPUACCT, /* v1 */
    HC_CONTROLLER_COUNT
};

#define HC_FD_KEEPER_SOCKET  3
#define HC_FD_KEEPER_CGROUPS 4 /* HC_CONTROLLER_COUNT directory descriptors, /dev/null where absent */
#define HC_FD_KEEPER_INIT    (HC_FD_KEEPER_CGROUPS + HC_CONTROLLER_COUNT)
#define HC_FD_KEEPER_CONFIG  (HC_FD_KEEPER_INIT + 1)
#define HC_FD_KEEPER_LOCK    (HC_FD_KEEPER_CONFIG + 1)
#define HC_FD_KEEPER_END     (HC_FD_KEEPER_LOCK + 1)

struct hc_keeper_config {
    uint32_t version;
    uint32_t controllers;    /* bit per enum hc_controller with a usable directory */
    uint32_t v2_controllers; /* bit per HC_V2_* enabled in the cgroup2 tree */
    uint32_t slice;
    uint32_t id_base; /* host user id of the hall's id 0 */
    uint32_t ceiling_processes;
    uint64_t ceiling_memory_bytes;
    uint64_t allow_layers;
    uint64_t page_size;
    uint32_t fault_program;
    uint32_t fault_nth;
    uint32_t gid_base; /* host group id of the hall's id 0 */
    uint32_t reserved;
};

enum hc_v2_controller { HC_V2_MEMORY = 1, HC_V2_PIDS = 2, HC_V2_CPU = 4 };

/* ---- library <-> keeper ---- */

enum hc_op {
    HC_OP_MAKE = 1, /* an empty cell in `slot` */
    HC_OP_START,    /* descriptors: plan, stdin, stdout, stderr, report socket; the payload waits until the
                     * library has    read the attestation and sends a byte on the report socket: it never runs
                     * with    less than asked */
    HC_OP_ATTEST,   /* read the running payload again */
    HC_OP_DESTROY,
    HC_OP_HOST,      /* a warm host in place `slot`; descriptors as HC_OP_START */
    HC_OP_HOST_END,  /* ends the warm host in place `slot`; cells it has made live on */
    HC_OP_MAKE_WARM, /* a cell in `slot` with a payload of warm host `host` waiting in it */
    HC_OP_END
};

#define HC_START_FDS 5

struct hc_request {
    uint32_t version;
    uint32_t op;
    uint32_t slot;
    uint32_t processes; /* of the payload; init is added by the keeper */
    uint64_t memory_bytes;
    uint32_t cpu_quota_us; /* per period; 0: none */
    uint32_t cpu_period_us;
    uint32_t calls_max; /* notified calls that are forwarded before they are only counted */
    uint32_t host;      /* of HC_OP_MAKE_WARM */
};

enum hc_event_kind {
    HC_EVENT_HELLO = 1, /* the keeper is ready; descriptor: the hall's user namespace */
    HC_EVENT_MADE,      /* descriptors: see enum hc_meter, those in `meters` */
    HC_EVENT_READY, /* descriptors: the working folder; the payload waits for one byte on the report socket */
    HC_EVENT_ATTESTED, /* answer to HC_OP_ATTEST; error when the payload is gone */
    HC_EVENT_CALL,     /* a notified system call */
    HC_EVENT_DESTROYED,
    HC_EVENT_FAILED,     /* stage, error; HC_EVENT_DESTROYED follows (but for a refused request, and from the
                            hall) */
    HC_EVENT_HOST_READY, /* the warm host in place `slot` has imported its modules */
    HC_EVENT_HOST_ENDED, /* it is gone: stage, error (a wait status in at_ns) */
};

/* Counters that the library reads itself, from descriptors opened by the keeper. */
enum hc_meter {
    HC_METER_KILL,         /* cgroup.kill, write */
    HC_METER_EVENTS,       /* cgroup.events */
    HC_METER_OOM,          /* v2 memory.events, v1 memory.oom_control */
    HC_METER_PEAK,         /* v2 memory.peak, v1 memory.max_usage_in_bytes */
    HC_METER_FAILCNT,      /* v1 memory.failcnt */
    HC_METER_PIDS_EVENTS,  /* pids.events */
    HC_METER_PIDS_PEAK,    /* pids.peak, where there */
    HC_METER_CPU_STAT,     /* v2 cpu.stat (the controller-less leaf has it too) */
    HC_METER_CPUACCT,      /* v1 cpuacct.usage */
    HC_METER_CPUACCT_STAT, /* v1 cpuacct.stat */
    HC_METER_INIT,         /* pidfd of process 1: when it is dead, everything in the cell is */
    HC_METER_OOM_EVENT,    /* v1: an eventfd raised when the group runs out of memory */
    HC_METER_COUNT
};

#define HC_STATUS_TEXT 1536
#define HC_MOUNTS_TEXT 16384
#define HC_CGROUP_TEXT 768
#define HC_LIMITS_TEXT 1536
#define HC_NS_COUNT    7

extern const char *const hc_ns_names[HC_NS_COUNT]; /* user pid mnt net ipc uts cgroup */

/* The payload as the hall's /proc shows it: kernel text, copied and not interpreted by the keeper. */
struct hc_attestation {
    uint64_t ns_payload[HC_NS_COUNT]; /* inode numbers of /proc/PID/ns/X; 0: unreadable */
    uint64_t ns_keeper[HC_NS_COUNT];
    uint32_t host_uid, host_gid; /* expected owner: what the id maps of the hall and cell make of it */
    uint32_t listener;           /* the notification descriptor arrived */
    uint32_t status_len, mounts_len, cgroup_len, limits_len;
    char status[HC_STATUS_TEXT];
    char mounts[HC_MOUNTS_TEXT];
    char cgroup[HC_CGROUP_TEXT];
    char limits[HC_LIMITS_TEXT];
};

/* Facts of making and starting that only init or the keeper can see. */
struct hc_cell_facts {
    uint64_t layers_applied; /* bit per enum hc_layer, set after the call succeeded and was read back */
    uint64_t layers_absent;  /* accepted by name and not there */
    uint64_t memory_applied_bytes;
    uint64_t processes_applied; /* as read back, init included */
    uint64_t cpu_quota_applied_us;
    uint64_t cpu_period_applied_us;
    uint64_t swap_applied_bytes;
    uint64_t scratch_applied_bytes;
    uint64_t scratch_applied_inodes;
    uint64_t scratch_used_inodes; /* by the inputs, before the program starts */
    uint64_t scratch_used_bytes;
    uint32_t landlock_abi;
    uint32_t nested_max; /* user.max_user_namespaces as read in the cell */
    uint32_t securebits;
    int32_t oom_score_adj;
    uint32_t core_handler; /* filled in by the library: the host's core_pattern names a handler */
    uint32_t reserved;
};

#define HC_CALL_DATA 256

struct hc_call {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    uint64_t args[6];
    int32_t nr;
    int32_t answer; /* 0: went on; else the negative errno that was given */
    uint32_t reads; /* what `data` holds: see struct hc_notify_rule */
    uint32_t data_len;
    uint8_t data[HC_CALL_DATA];
};

struct hc_residue {
    uint32_t processes;
    uint32_t mounts;
    uint32_t cgroups;
    uint32_t files;
};

struct hc_event {
    uint32_t version;
    uint32_t kind;
    uint32_t slot;
    uint32_t stage;  /* enum hc_stage of HC_EVENT_FAILED */
    int32_t error;   /* negative errno */
    uint32_t meters; /* bit per enum hc_meter that comes with HC_EVENT_MADE */
    uint64_t calls_omitted;
    uint64_t at_ns;
    union {
        struct hc_keeper_config hello;
        struct {
            struct hc_cell_facts facts; /* of HC_EVENT_READY */
            struct hc_attestation attestation;
        } ready;
        struct hc_call call;
        struct hc_residue residue;
        char detail[HC_PATH_SIZE]; /* of HC_EVENT_FAILED: the object that the stage was about */
    } u;
};

/* Bytes of an event that go over the socket: the attestation is large and the socket's buffer is not. */
static inline size_t hc_event_size(uint32_t kind)
{
    size_t head = offsetof(struct hc_event, u);
    if (kind == HC_EVENT_READY || kind == HC_EVENT_ATTESTED)
        return sizeof(struct hc_event);
    return head + (kind == HC_EVENT_CALL ? sizeof(struct hc_call) : HC_PATH_SIZE);
}
_Static_assert(sizeof(struct hc_keeper_config) <= HC_PATH_SIZE, "hello fits the short form of an event");

/* ---- keeper <-> init ---- */

enum hc_init_order_kind { HC_INIT_START = 1 };

enum hc_init_mode { HC_INIT_OF_CELL, HC_INIT_OF_HOST };

struct hc_init_config {
    uint32_t version;
    uint32_t slot;
    uint64_t allow_layers;
    uint32_t fault_nth; /* test builds */
    uint32_t mode;      /* enum hc_init_mode */
};

struct hc_init_order {
    uint32_t version;
    uint32_t kind;
};

enum hc_init_report_kind {
    HC_INIT_MADE = 1,
    HC_INIT_READY, /* descriptors: payload pidfd, working folder, and the listener last if there is one */
    HC_INIT_FAILED,
};

struct hc_init_report {
    uint32_t version;
    uint32_t kind;
    uint32_t stage;
    int32_t error;
    struct hc_cell_facts facts;
};

/* ---- keeper <-> warm host ----
 *
 * The host makes one payload at a time. A process between host and payload, sharing the host's memory, asks
 * to be moved into the cell's cgroup2 leaf, joins the v1 leaves and the namespaces, forks the payload and is
 * gone; the keeper is then its parent. */

#define HC_FD_HOST_SOCKET 3 /* of the interpreter of a warm host */
#define HC_WARM_FDS                                                                                          \
    (2 + HC_CONTROLLER_COUNT) /* pidfd of init, the payload's socket, folders of the v1 leaves */

enum hc_warm_order_kind { HC_WARM_FORK = 1, HC_WARM_MOVED };

struct hc_warm_order {
    uint32_t version;
    uint32_t kind;
    uint32_t slot;
    uint32_t leaves; /* folders of v1 leaves that come along */
    uint64_t allow_layers;
};

enum hc_warm_report_kind {
    HC_WARM_UP = 1,  /* modules imported */
    HC_WARM_MOVE_ME, /* pid: wants to be in the cell's cgroup2 leaf */
    HC_WARM_FORKED,  /* pid of the payload */
    HC_WARM_WAITS,   /* the payload: everything is shed, listener is the number of its notification descriptor
                      */
    HC_WARM_FAILED,  /* stage, error */
};

struct hc_warm_report {
    uint32_t version;
    uint32_t kind;
    uint32_t slot;
    uint32_t stage;
    int32_t error;
    int32_t pid; /* in the hall's pid namespace */
    int32_t listener;
    uint32_t landlock_abi;
    uint64_t layers_applied;
    uint32_t securebits;
    int32_t oom_score_adj;
};

/* init -> payload: the run begins; descriptors as HC_OP_START. The payload answers as one that is about to
 * exec. */
struct hc_warm_start {
    uint32_t version;
    uint32_t reserved;
};

/* What a payload says on its way: each message is one of these. */
struct hc_payload_report {
    uint32_t stage; /* HC_STAGE_NONE: ready, waits for the library's byte */
    int32_t error;
    int32_t listener; /* number in the descriptor table that init and payload share until the exec; -1: handed
                         over before */
    uint32_t reserved;
    uint64_t layers_applied;
};

/* ---- init -> library: the ends of things, at once and without a hop ---- */

enum hc_end_kind { HC_END_EXECED = 1, HC_END_EXITED, HC_END_FAILED };

struct hc_end_report {
    uint32_t version;
    uint32_t kind;
    uint32_t stage;
    int32_t error;
    uint64_t at_ns;
    int32_t wait_status; /* as wait4 gives it */
    uint32_t reserved;
    uint64_t scratch_free_bytes; /* when the main process ended */
    uint64_t scratch_free_inodes;
};

/* ---- the plan ---- */

#define HC_PLAN_MAGIC     0x6e6c7063u /* "cpln" */
#define HC_PLAN_ARGS_MAX  1024
#define HC_PLAN_ENV_MAX   512
#define HC_PLAN_NAME_MAX  1024
#define HC_PLAN_FILES_MAX 65536
#define HC_PLAN_BYTES_MAX (320ull * 1024 * 1024)
#define HC_RLIMIT_MAX     16

/* A hook is a file of the runtime's, not of the run: it lies in HC_HOOK_FOLDER under a plain name, read-only.
 */
enum hc_entry_kind { HC_ENTRY_FOLDER = 1, HC_ENTRY_FILE, HC_ENTRY_HOOK };
#define HC_HOOK_FOLDER "/tmp/.hotcell"

struct hc_plan_entry {
    uint32_t kind;
    uint32_t mode;
    uint64_t name_offset; /* NUL-terminated, relative to the working folder; the program first */
    uint64_t data_offset; /* from the start of the memfd */
    uint64_t data_bytes;
    uint32_t payload_owned; /* 1: the program may write it */
    uint32_t reserved;
};

struct hc_plan_rlimit {
    uint32_t resource;
    uint32_t reserved;
    uint64_t soft;
    uint64_t hard;
};

/* Offsets point into the memfd. args and env are tables of uint64_t offsets of NUL-terminated strings. */
struct hc_plan {
    uint32_t magic;
    uint32_t version;
    uint64_t total_bytes;
    uint64_t scratch_bytes;
    uint64_t scratch_inodes;
    uint32_t arg_count;
    uint32_t env_count;
    uint64_t args_offset;
    uint64_t env_offset;
    uint32_t entry_count;
    uint32_t rlimit_count;
    uint64_t entries_offset;
    uint64_t allow_layers;
    struct hc_plan_rlimit rlimits[HC_RLIMIT_MAX];
};

#endif
