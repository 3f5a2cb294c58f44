/* SPDX-License-Identifier: MIT */
/* params.h - parameters of programs built against any version of the library
 *
 * Structures of parameters begin with their size, and only grow at the end: a
 * program that was built before a member existed gives a smaller one, and gets
 * the default of that member. A program built with a newer library gives a
 * larger one, which is accepted if its further members are 0: in added members
 * 0 means the earlier behaviour.
 */
#ifndef GG_BASE_PARAMS_H
#define GG_BASE_PARAMS_H

#include "base/error.h"

#include <stdbool.h>

/* No structure of parameters is larger: a larger struct_size was not set. */
enum { GG_PARAMS_MOST = 4096 };

/* own, of size bytes, holds the defaults: take over what given has. NULL gives
 * nothing. name is the structure's. GGUF_E_INVALID: given has more than own and
 * not only zeros there, or has no size. */
enum gguf_status gg_params_take(void *own, size_t size, const void *given,
                                const char *name, struct gguf_error *err);

/* The other way, for structures of results: copy own, of size bytes, to given
 * as far as that has room; its struct_size stays. Members that given has beyond
 * own are not touched. GGUF_E_INVALID: given is NULL or has no size. */
enum gguf_status gg_params_give(void *given, const void *own, size_t size,
                                const char *name, struct gguf_error *err);

/* Check that something required is there: GGUF_E_INVALID with its name if it
 * is not. */
enum gguf_status gg_params_need(bool there, const char *name,
                                struct gguf_error *err);

/* Check a list of n pointers: GGUF_E_INVALID if the list or one of its elements
 * is NULL. what is an element's name. */
enum gguf_status gg_params_need_all(const void *list, size_t n,
                                    const char *what, struct gguf_error *err);

#endif
