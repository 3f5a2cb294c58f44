/* SPDX-License-Identifier: MIT */
/* gguf.h - all of libgguf
 *
 * Reads, writes, quantizes and evaluates GGUF model files. Each header below
 * is the manual of its part; status.h says how calls fail.
 *
 * Structures of parameters begin with struct_size, which their initialiser
 * (GGUF_..._INIT) sets, and grow at the end only. In a shorter structure from
 * an older program the missing members have their defaults. A longer one from
 * a newer program is accepted if all bytes that the library does not know are
 * 0, and else refused (GGUF_E_INVALID).
 *
 * NULL in place of parameters stands for the initialiser's values. A function
 * that needs more than these, such as a backend, then returns GGUF_E_INVALID.
 * NULL in place of a structure of results is GGUF_E_INVALID, unless the
 * function's comment says that it may be NULL. The comment of each callback
 * says whether it may be NULL; one that is required is checked before the
 * function does anything.
 */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H

#include <gguf/adapter.h>
#include <gguf/backend.h>
#include <gguf/backend_impl.h>
#include <gguf/baseline.h>
#include <gguf/bisect.h>
#include <gguf/blas.h>
#include <gguf/check.h>
#include <gguf/collect.h>
#include <gguf/compare.h>
#include <gguf/convert.h>
#include <gguf/cpu.h>
#include <gguf/digest.h>
#include <gguf/dtype.h>
#include <gguf/edit.h>
#include <gguf/eval.h>
#include <gguf/file.h>
#include <gguf/graph.h>
#include <gguf/imatrix.h>
#include <gguf/kld.h>
#include <gguf/kv.h>
#include <gguf/layers.h>
#include <gguf/memory.h>
#include <gguf/load.h>
#include <gguf/model_base.h>
#include <gguf/op.h>
#include <gguf/op_base.h>
#include <gguf/op_conv.h>
#include <gguf/op_copy.h>
#include <gguf/op_custom.h>
#include <gguf/op_elem.h>
#include <gguf/op_mat.h>
#include <gguf/op_recur.h>
#include <gguf/op_row.h>
#include <gguf/outfile.h>
#include <gguf/part.h>
#include <gguf/paths.h>
#include <gguf/pool.h>
#include <gguf/profile.h>
#include <gguf/progress.h>
#include <gguf/quant.h>
#include <gguf/reader.h>
#include <gguf/recipe.h>
#include <gguf/sched.h>
#include <gguf/session.h>
#include <gguf/split.h>
#include <gguf/stats.h>
#include <gguf/status.h>
#include <gguf/target.h>
#include <gguf/task.h>
#include <gguf/tensor.h>
#include <gguf/text.h>
#include <gguf/verify.h>
#include <gguf/version.h>
#include <gguf/vocab.h>
#include <gguf/writer.h>

#endif
