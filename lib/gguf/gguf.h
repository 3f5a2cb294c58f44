/* SPDX-License-Identifier: MIT */
/* gguf.h - GGUF files: read, check, edit, split, convert and quantize them
 *
 * This header includes those of everything that works on files without
 * evaluating a model, which is what most programs want:
 *
 *     file.h kv.h dtype.h reader.h      a file, its metadata and its tensors
 *     check.h verify.h stats.h          faults of a file, statistics of tensors
 *     recognize.h                       parts of unknown architectures
 *     digest.h                          checksums, manifests
 *     writer.h edit.h split.h           write files, edit metadata, split files
 *     convert.h quant.h recipe.h        write another file from a folder or a
 *     improve.h target.h imatrix.h      file
 *     outfile.h paths.h progress.h      parts that all of these use
 *     pool.h text.h memory.h status.h
 *     version.h
 *
 * <gguf/compute.h> has tensors, graphs and backends; <gguf/model.h> has models,
 * sessions and evaluation, and includes both others. A program that adds a
 * backend includes <gguf/backend_impl.h> by name. Each header can also be
 * included alone.
 *
 * Rules that hold in every header:
 *
 * - A function that can fail returns an enum gguf_status and takes, as its last
 *   parameter, a struct gguf_error, which may be NULL (status.h). After a
 *   failure, *out of a function that makes an object is NULL.
 * - An object that X_open() opens is closed by X_close(); one that X_create(),
 *   X_load() or X_parse() makes is destroyed by X_destroy(). Both accept NULL.
 * - A structure of parameters or results begins with struct_size, which its
 *   initialiser (GGUF_..._INIT) sets, and grows at its end only. 0, NULL and
 *   false are the default of every member.
 * - A structure of an older program is shorter: the missing members have their
 *   defaults. One of a newer program is longer: it is accepted if all bytes
 *   that the library does not know are 0, else the call fails with
 *   GGUF_E_INVALID.
 * - NULL in place of parameters means all defaults. A function that needs one
 *   of the members then returns GGUF_E_INVALID. NULL in place of a structure of
 *   results is GGUF_E_INVALID, unless the function says that it may be NULL.
 * - A callback is a struct { fn, user }: user is the first argument of each
 *   call, and fn NULL means: no callback. A callback that is
 *   required is checked before the function does anything.
 * - A const pointer means that the function does not change the object: any
 *   number of threads may make such calls at the same time.
 */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H

#include <gguf/check.h>
#include <gguf/convert.h>
#include <gguf/digest.h>
#include <gguf/dtype.h>
#include <gguf/edit.h>
#include <gguf/file.h>
#include <gguf/imatrix.h>
#include <gguf/improve.h>
#include <gguf/kv.h>
#include <gguf/memory.h>
#include <gguf/meta.h>
#include <gguf/outfile.h>
#include <gguf/paths.h>
#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/quant.h>
#include <gguf/reader.h>
#include <gguf/recipe.h>
#include <gguf/recognize.h>
#include <gguf/split.h>
#include <gguf/stats.h>
#include <gguf/status.h>
#include <gguf/target.h>
#include <gguf/text.h>
#include <gguf/verify.h>
#include <gguf/version.h>
#include <gguf/writer.h>

#endif
