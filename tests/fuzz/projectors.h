/* SPDX-License-Identifier: MIT */
/* projectors.h - seeds made from the rows of projectors and image models */
#ifndef TESTS_FUZZ_PROJECTORS_H
#define TESTS_FUZZ_PROJECTORS_H

#include "tests/fix.h"

/* Append a projector file of row no (model/weight/projector_rows.h). All
 * dimensions are 4, all numbers 0. Returns false after the last row. */
bool put_projector(struct fix *f, size_t no);

/* Append the files of a folder (fuzz_folder.c) of the class of row no
 * (convert/projector/projector.h): settings with small numbers, and a tensor
 * for each name of the row. Returns false after the last row. */
bool put_projector_folder(struct fix *f, size_t no);
/* Append a list of tensors (tensors.h): the names that tell architecture no of
 * image models (convert/image/image.h), and some others. Returns false after
 * the last architecture. */
bool put_image_tensors(struct fix *f, size_t no);
/* Append a folder with the tensors of image layout no of diffusers. Returns
 * false after the last layout. */
bool put_diffusers_folder(struct fix *f, size_t no);

#endif
