/* SPDX-License-Identifier: MIT */
/* params.h - structures of parameters from programs built with any version
 *
 * Such a structure begins with its size and grows only at its end. A program
 * built before a member existed passes a smaller structure: the member then has
 * its default. A program built with a newer library passes a larger one, which
 * is accepted if all further members are 0, since 0 in a new member means the
 * earlier behaviour.
 */
#ifndef GG_BASE_PARAMS_H
#define GG_BASE_PARAMS_H

#include "base/error.h"

#include <stdbool.h>

/* Largest struct_size that is accepted. A larger one was not initialized. */
enum { GG_PARAMS_MOST = 4096 };

/* Copy the members of a program's parameters over the defaults.
 *
 * own     The library's structure with the defaults. Its struct_size stays.
 * size    Bytes of own.
 * given   The program's structure. NULL: own stays as it is.
 * name    Name of the structure for messages.
 *
 * GGUF_E_INVALID: given is larger than own and has other bytes than 0 there, or
 * its struct_size is not set. */
enum gguf_status gg_params_take(void *own, size_t size, const void *given,
                                const char *name, struct gguf_error *err);

/* Copy results to a program's structure, as far as it has room.
 *
 * given   The program's structure. Its struct_size, and members that own does
 *         not have, stay.
 * own     The library's structure with the results.
 * size    Bytes of own.
 * name    Name of the structure for messages.
 *
 * GGUF_E_INVALID: given is NULL, or its struct_size is not set. */
enum gguf_status gg_params_give(void *given, const void *own, size_t size,
                                const char *name, struct gguf_error *err);

/* Check a required parameter. GGUF_E_INVALID, with its name, unless there. */
enum gguf_status gg_params_need(bool there, const char *name,
                                struct gguf_error *err);

/* Check a required list of n pointers. what names an element in messages.
 * GGUF_E_INVALID: the list or an element is NULL. */
enum gguf_status gg_params_need_all(const void *list, size_t n,
                                    const char *what, struct gguf_error *err);

#endif
