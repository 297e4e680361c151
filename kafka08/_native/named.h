/* A NamedTuple of its values, without the steps of its constructor. */

#ifndef KAFKA08_NAMED_H
#define KAFKA08_NAMED_H

#include <Python.h>

/* `kind` is a class of tuples without a state of its own, `values` a tuple. */
static PyObject *named_of(PyTypeObject *kind, PyObject *values) {
    if (!PyType_FastSubclass(kind, Py_TPFLAGS_TUPLE_SUBCLASS)) {
        PyErr_Format(PyExc_TypeError, "%s is not a class of tuples", kind->tp_name);
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    PyObject *made = kind->tp_alloc(kind, count);
    if (made == NULL)
        return NULL;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *value = PyTuple_GET_ITEM(values, index);
        Py_INCREF(value);
        PyTuple_SET_ITEM(made, index, value);
    }
    return made;
}

#endif
