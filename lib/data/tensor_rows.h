/* SPDX-License-Identifier: MIT */
/* tensor_rows.h - rows of a file's tensors as floats, for programs */
#ifndef GG_DATA_TENSOR_ROWS_H
#define GG_DATA_TENSOR_ROWS_H

#include "data/data.h"
#include "gguf/stats.h"

/* Prepare to read tensor i of file, with its scale tensor. *out is valid as
 * long as file is open. GGUF_E_INVALID: i is out of range. Other statuses:
 * those of gg_data_rows. */
enum gguf_status gg_data_rows_of(const struct gguf_rows *rows,
                                 const struct gguf_file *file, size_t i,
                                 struct gg_data_rows *out,
                                 struct gguf_error *err);

#endif
