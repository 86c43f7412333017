/* _hotcell_warm: what a warm Python needs of the kernel. Stable ABI, so that one module fits every version
 * from 3.9 on.
 *
 * The functions are for share/warm/python/sitecustomize.py alone, and are gone from sys.modules before a
 * program runs. */
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "warm/join.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* Exported by every version, though not declared in the limited headers. */
extern void PyThreadState_DeleteCurrent(void);

static struct hc_warm_job job;

static PyObject *failed(int error)
{
    errno = -error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    if (folder == NULL)
        return -errno;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE_BYTES (2ul * 1024 * 1024)

/* Huge pages make both the children's fork and their end cheaper: one entry to copy and to drop instead of
 * 512. Where the kernel does not know how (before 6.1) nothing is lost. */
static void collapse_memory(void)
{
    char line[512], protection[8], path[256];
    unsigned long from, to, inode;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        path[0] = '\0';
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %255s", &from, &to, protection, &inode, path) < 4 ||
            inode != 0 || strncmp(protection, "rw", 2) != 0 ||
            (path[0] != '\0' && strcmp(path, "[heap]") != 0))
            continue;
        unsigned long first = (from + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES,
                      last = to / HUGE_BYTES * HUGE_BYTES;
        if (last > first)
            (void)madvise((void *)first, last - first, MADV_COLLAPSE);
    }
    if (maps != NULL)
        (void)fclose(maps);
}

/* The interpreter takes its small objects from arenas of 1 MB (256 KB before 3.10) that lie wherever the
 * kernel puts them. Here the host's lie side by side, on huge pages. A child goes on with ordinary ones, so
 * that it is charged for what it uses and no more. */
typedef struct {
    void *context;
    void *(*allocate)(void *, size_t);
    void (*release)(void *, void *, size_t);
} arena_allocator;
extern void PyObject_SetArenaAllocator(arena_allocator *allocator);

#define ARENAS_BYTES (512ul * 1024 * 1024)

static struct {
    char *from, *next, *end;
    int closed;
} arenas;

static void *arena_allocate(void *context, size_t bytes)
{
    (void)context;
    if (!arenas.closed && (size_t)(arenas.end - arenas.next) >= bytes) {
        void *arena = arenas.next;
        arenas.next += bytes;
        return arena;
    }
    void *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return arena != MAP_FAILED ? arena : NULL;
}

static void arena_release(void *context, void *arena, size_t bytes)
{
    (void)context;
    (void)munmap(arena, bytes);
}

static void gather_arenas(void)
{
    arena_allocator allocator = {NULL, arena_allocate, arena_release};
    char *from = mmap(NULL, ARENAS_BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (from == MAP_FAILED)
        return;
    arenas.from = arenas.next = (char *)(((uintptr_t)from + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
    arenas.end = arenas.from + ARENAS_BYTES;
    (void)madvise(arenas.from, ARENAS_BYTES, MADV_HUGEPAGE);
    PyObject_SetArenaAllocator(&allocator);
}

static void close_arenas(void)
{
    if (arenas.from == NULL)
        return;
    arenas.closed = 1;
    (void)munmap(arenas.next, (size_t)(arenas.end - arenas.next));
    (void)madvise(arenas.from, (size_t)(arenas.next - arenas.from), MADV_COLLAPSE);
}

PyDoc_STRVAR(up_doc, "up() -> None\n\nTells the keeper that everything is imported. OSError EBUSY: an import "
                     "has left a thread "
                     "behind, and a fork would lose it.");

static PyObject *up(PyObject *self, PyObject *unused)
{
    struct hc_warm_report report = {.version = HC_WIRE_VERSION, .kind = HC_WARM_UP};
    (void)self;
    (void)unused;
    int threads = count_threads();
    if (threads != 1)
        return failed(threads < 0 ? threads : -EBUSY);
    close_arenas();
    collapse_memory();
    int error = hc_warm_tell(&report);
    if (error < 0)
        return failed(error);
    Py_RETURN_NONE;
}

static void tell_forked(void)
{
    struct hc_warm_report report = {.version = HC_WIRE_VERSION,
                                    .kind = job.error == 0 ? HC_WARM_FORKED : HC_WARM_FAILED,
                                    .slot = job.order.slot,
                                    .stage = (uint32_t)job.stage,
                                    .error = job.error,
                                    .pid = (int32_t)job.pid};
    (void)hc_warm_tell(&report);
}

PyDoc_STRVAR(
    serve_doc,
    "serve() -> None\n\nMakes children in cells as the keeper asks. Returns in each of them; the host itself "
    "ends here when the keeper is gone.");

static PyObject *serve(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    for (;;) {
        int error = hc_warm_next(&job);
        if (error != 0)
            _exit(error < 0);
        PyOS_BeforeFork();
        if (hc_warm_fork(&job)) {
            hc_warm_settle(&job);
            PyOS_AfterFork_Child();
            Py_RETURN_NONE;
        }
        PyOS_AfterFork_Parent();
        tell_forked();
    }
}

static PyObject *texts(char *const *items)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && items[i] != NULL; i++) {
        PyObject *item = PyUnicode_DecodeFSDefault(items[i]);
        if (item == NULL || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyDoc_STRVAR(begin_doc, "begin() -> (arguments, environment)\n\nWaits for the run that this child is for. "
                        "Lists of str: the command "
                        "line, and NAME=VALUE.");

static PyObject *begin(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    hc_warm_begin(&job);
    PyObject *arguments = texts(job.view.argv), *environment = texts(job.view.envp);
    if (arguments == NULL || environment == NULL) {
        Py_XDECREF(arguments);
        Py_XDECREF(environment);
        return NULL;
    }
    return Py_BuildValue("(NN)", arguments, environment);
}

/* ---- the program ----
 *
 * Run from here, not by returning into the interpreter's own start: taking an interpreter apart at its end
 * touches every page that the child still shares with its host, which costs more than most programs. What a
 * program can see of an end is done in the same order as Py_FinalizeEx does it; the rest is left to the
 * kernel. */

/* A thread state of its own, so that no frame of ours lies below the program's. The old one's frames are
 * never returned to. One more state stands in between: the interpreter would give us the old one's memory as
 * it is if it had no other, and only a state that is made while the thread has none becomes the one that
 * PyGILState_Ensure finds. */
static int renew_thread_state(void)
{
    PyThreadState *old = PyThreadState_Get();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(old);
    PyThreadState *between = PyThreadState_New(interpreter);
    if (between == NULL)
        return -ENOMEM;
    PyThreadState_Clear(old);
    PyThreadState_DeleteCurrent();
    PyThreadState *fresh = PyThreadState_New(interpreter);
    if (fresh == NULL)
        return -ENOMEM;
    PyEval_RestoreThread(fresh);
    PyThreadState_Clear(between);
    PyThreadState_Delete(between);
    return 0;
}

/* Borrowed; NULL without an exception when it is not there. */
static PyObject *loaded_module(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    return modules != NULL ? PyDict_GetItemString(modules, name) : NULL;
}

static void call(const char *module, const char *function)
{
    PyObject *loaded = loaded_module(module);
    if (loaded == NULL || loaded == Py_None)
        return;
    PyObject *result = PyObject_CallMethod(loaded, function, NULL);
    if (result == NULL)
        PyErr_WriteUnraisable(loaded);
    Py_XDECREF(result);
}

/* Up to 3.12 the main thread holds a lock that its thread state lets go when it ends; the new state has to
 * hold one. */
static void renew_main_thread(void)
{
    PyObject *threading = loaded_module("threading");
    PyObject *main_thread = threading != NULL ? PyObject_GetAttrString(threading, "_main_thread") : NULL;
    if (main_thread != NULL && PyObject_HasAttrString(main_thread, "_set_tstate_lock")) {
        PyObject *result = PyObject_CallMethod(main_thread, "_set_tstate_lock", NULL);
        Py_XDECREF(result);
    }
    Py_XDECREF(main_thread);
    PyErr_Clear();
}

static int flush(const char *stream)
{
    PyObject *file = PySys_GetObject(stream);
    if (file == NULL || file == Py_None)
        return 0;
    PyObject *closed = PyObject_GetAttrString(file, "closed");
    int is_closed = closed != NULL ? PyObject_IsTrue(closed) : 0;
    Py_XDECREF(closed);
    PyErr_Clear();
    if (is_closed > 0)
        return 0;
    PyObject *result = PyObject_CallMethod(file, "flush", NULL);
    int failed_here = result == NULL;
    if (failed_here)
        PyErr_WriteUnraisable(file);
    Py_XDECREF(result);
    return failed_here;
}

static void flush_quietly(void)
{
    static const char *const streams[] = {"stderr", "stdout"};
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (int i = 0; i < 2; i++) {
        PyObject *file = PySys_GetObject(streams[i]);
        PyObject *result = file != NULL && file != Py_None ? PyObject_CallMethod(file, "flush", NULL) : NULL;
        Py_XDECREF(result);
        PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
}

/* As the interpreter reads a SystemExit: nothing is 0, a number is itself, anything else is said and is 1. */
static int code_of_exit(void)
{
    PyObject *type, *value, *trace;
    int code = 0;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *inner = value != NULL ? PyObject_GetAttrString(value, "code") : NULL;
    PyErr_Clear();
    if (inner != NULL && inner != Py_None) {
        if (PyLong_Check(inner)) {
            code = (int)PyLong_AsLong(inner);
        } else {
            PyObject *err = PySys_GetObject("stderr");
            if (err != NULL && err != Py_None)
                (void)PyFile_WriteObject(inner, err, Py_PRINT_RAW);
            PySys_WriteStderr("\n");
            code = 1;
        }
        PyErr_Clear();
    }
    Py_XDECREF(inner);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return code;
}

static int code_of_exception(int *ret_interrupted)
{
    if (PyErr_ExceptionMatches(PyExc_SystemExit))
        return code_of_exit();
    *ret_interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Print();
    return 1;
}

/* compile() and exec(), called from no frame at all. */
static PyObject *run_source(PyObject *source, PyObject *name, PyObject *globals)
{
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *compile = builtins != NULL ? PyDict_GetItemString(builtins, "compile") : NULL;
    if (compile == NULL)
        return NULL;
    PyObject *code = PyObject_CallFunction(compile, "OOsii", source, name, "exec", 0, 1);
    if (code == NULL)
        return NULL;
    PyObject *result = PyEval_EvalCode(code, globals, globals);
    Py_DECREF(code);
    return result;
}

/* Names with one underscore go first, then all but the builtins: as _PyModule_ClearDict. */
static void clear_module(PyObject *globals)
{
    for (int pass = 0; pass < 2; pass++) {
        PyObject *names = PyDict_Keys(globals);
        Py_ssize_t count = names != NULL ? PyList_Size(names) : 0;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *name = PyList_GetItem(names, i);
            const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
            int underscored = text != NULL && text[0] == '_' && text[1] != '_';
            if (text != NULL && PyDict_GetItem(globals, name) != Py_None &&
                (pass == 0 ? underscored : strcmp(text, "__builtins__") != 0))
                (void)PyDict_SetItem(globals, name, Py_None);
            PyErr_Clear();
        }
        Py_XDECREF(names);
    }
}

/* Keeps the names of the program's own modules. Neither a list of all names nor their modules are held on the
 * way: a reference taken is a page copied. */
static PyObject *own_modules(PyObject *modules, PyObject *ours)
{
    PyObject *own = PyList_New(0), *name, *loaded;
    Py_ssize_t at = 0;
    while (own != NULL && PyDict_Next(modules, &at, &name, &loaded)) {
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : "";
        int is_main = text != NULL && strcmp(text, "__main__") == 0;
        if (loaded != Py_None && (is_main || PySet_Contains(ours, name) == 0))
            (void)PyList_Append(own, name);
        PyErr_Clear();
    }
    return own;
}

/* __main__ was imported first and goes last, as the interpreter has it; what the host has imported stays as
 * it is. */
static void forget_modules(PyObject *ours)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *own = modules != NULL ? own_modules(modules, ours) : NULL;
    PyObject *alive = PyList_New(0);
    for (Py_ssize_t i = 0; own != NULL && alive != NULL && i < PyList_Size(own); i++) {
        PyObject *name = PyList_GetItem(own, i);
        PyObject *weak = PyWeakref_NewRef(PyDict_GetItem(modules, name), NULL);
        if (weak != NULL)
            (void)PyList_Append(alive, weak);
        Py_XDECREF(weak);
        PyErr_Clear();
        (void)PyDict_SetItem(modules, name, Py_None);
    }
    (void)PyGC_Collect();
    for (Py_ssize_t i = alive != NULL ? PyList_Size(alive) : 0; i > 0; i--) {
        PyObject *left = PyWeakref_GetObject(PyList_GetItem(alive, i - 1));
        if (left == NULL || !PyModule_Check(left))
            continue;
        Py_INCREF(left);
        clear_module(PyModule_GetDict(left));
        Py_DECREF(left);
    }
    PyErr_Clear();
    (void)PyGC_Collect();
}

static _Noreturn void leave(int code, int interrupted, PyObject *ours)
{
    call("threading", "_shutdown");
    call("atexit", "_run_exitfuncs");
    int unwritten = flush("stdout");
    unwritten |= flush("stderr");
    (void)PyGC_Collect();
    static const char *const streams[][2] = {
        {"stdin", "__stdin__"}, {"stdout", "__stdout__"}, {"stderr", "__stderr__"}};
    for (int i = 0; i < 3; i++) {
        PyObject *original = PySys_GetObject(streams[i][1]);
        if (original != NULL)
            (void)PySys_SetObject(streams[i][0], original);
    }
    static const char *const special[] = {
        "path",     "argv",           "ps1",        "ps2",       "last_type",          "last_value",
        "last_exc", "last_traceback", "path_hooks", "meta_path", "path_importer_cache"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (PySys_GetObject(special[i]) != NULL)
            (void)PySys_SetObject(special[i], Py_None);
    forget_modules(ours);
    unwritten |= flush("stdout");
    unwritten |= flush("stderr");
    (void)fflush(NULL);
    if (interrupted) {
        (void)signal(SIGINT, SIG_DFL);
        (void)kill(getpid(), SIGINT);
    }
    _exit(unwritten ? 120 : code & 0xff);
}

PyDoc_STRVAR(
    run_doc,
    "run(path, modules)\n\nWaits until the library has judged this process and let it go, then runs the file "
    "as "
    "__main__ and ends the process as the interpreter would. modules: a set of names, those of the host.");

static PyObject *read_file(const char *path)
{
    PyObject *io = PyImport_ImportModule("io");
    PyObject *file = io != NULL ? PyObject_CallMethod(io, "open", "ss", path, "rb") : NULL;
    PyObject *bytes = file != NULL ? PyObject_CallMethod(file, "read", NULL) : NULL;
    PyObject *closed = file != NULL ? PyObject_CallMethod(file, "close", NULL) : NULL;
    Py_XDECREF(closed);
    Py_XDECREF(file);
    Py_XDECREF(io);
    return bytes;
}

static PyObject *run(PyObject *self, PyObject *arguments)
{
    const char *path;
    PyObject *ours;
    int interrupted = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sO", &path, &ours))
        return NULL;
    Py_INCREF(ours);
    PyObject *name = PyUnicode_FromString(path);
    PyObject *globals = PyModule_GetDict(loaded_module("__main__"));
    if (name == NULL || renew_thread_state() != 0)
        _exit(127);
    renew_main_thread();
    hc_warm_go(&job);
    PyObject *source = read_file(path);
    PyObject *result = source != NULL ? run_source(source, name, globals) : NULL;
    Py_XDECREF(source);
    flush_quietly();
    int exits = result == NULL && PyErr_ExceptionMatches(PyExc_SystemExit);
    int code = result == NULL ? code_of_exception(&interrupted) : 0;
    Py_XDECREF(result);
    for (int i = 0; !exits && i < 2; i++) {
        (void)PyDict_DelItemString(globals, i == 0 ? "__file__" : "__cached__");
        PyErr_Clear();
    }
    leave(code, interrupted, ours);
}

static PyMethodDef methods[] = {
    {"up", up, METH_NOARGS, up_doc},
    {"serve", serve, METH_NOARGS, serve_doc},
    {"begin", begin, METH_NOARGS, begin_doc},
    {"run", run, METH_VARARGS, run_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
                                    "_hotcell_warm",
                                    "The keeper's end of a warm host.",
                                    -1,
                                    methods,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL};

PyMODINIT_FUNC PyInit__hotcell_warm(void);
PyMODINIT_FUNC PyInit__hotcell_warm(void)
{
    gather_arenas();
    return PyModule_Create(&module);
}
