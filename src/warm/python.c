/* _hotcell_warm: what a warm Python needs of the kernel. Stable ABI, so that one module fits every version
 * from 3.9 on.
 *
 * The functions are for share/warm/python/sitecustomize.py alone, and are gone from sys.modules before a
 * program runs. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "warm/join.h"

#include <dirent.h>
#include <errno.h>

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

PyDoc_STRVAR(go_doc, "go() -> None\n\nReturns when the library has judged this process and let it go.");

static PyObject *go(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    hc_warm_go(&job);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"up", up, METH_NOARGS, up_doc},
    {"serve", serve, METH_NOARGS, serve_doc},
    {"begin", begin, METH_NOARGS, begin_doc},
    {"go", go, METH_NOARGS, go_doc},
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
    return PyModule_Create(&module);
}
