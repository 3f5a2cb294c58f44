/* SPDX-License-Identifier: MIT */
/* archs.c - which number of a checkpoint a number of the file is */
#include "config.h"
#include "tests/convert/archs.h"

#include <math.h>

float same(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i);
}

float or_0(const struct folder_tensor *t, uint64_t i)
{
    return i < t->n ? folder_value(t->name, i) : 0;
}

float plus_1(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) + 1;
}

float neg_exp(const struct folder_tensor *t, uint64_t i)
{
    return -expf(folder_value(t->name, i));
}

/* Row r of a head, in pairs, is row r / 2 of its half r % 2. */
float paired(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->n_dims > 1 ? t->shape[1] : 1, head = 8;
    const uint64_t row = i / cols, col = i % cols;
    const uint64_t from =
        row / head * head + row % 2 * (head / 2) + row % head / 2;
    return folder_value(t->name, from * cols + col);
}

float turned(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t rows = t->shape[0], cols = t->shape[1];
    return folder_value(t->name, i % rows * cols + i / rows);
}

/* Of [matrices,] rows, columns. */
static float half(const struct folder_tensor *t, uint64_t i, uint64_t no)
{
    const uint64_t cols = t->shape[t->n_dims - 1];
    const uint64_t rows = t->shape[t->n_dims - 2], part = rows / 2 * cols;
    return folder_value(t->name,
                        i / part * rows * cols + no * part + i % part);
}

float half_1(const struct folder_tensor *t, uint64_t i)
{
    return half(t, i, 0);
}

float half_2(const struct folder_tensor *t, uint64_t i)
{
    return half(t, i, 1);
}

void archs_wordpiece(const struct folder *f)
{
    folder_wordpiece(f, true);
}

void archs_spiece(const struct folder *f)
{
    folder_unigram(f, FOLDER_UGM_SPIECE);
}

void archs_unigram(const struct folder *f)
{
    folder_unigram(f, FOLDER_UGM_JSON);
}

void archs_rwkv(const struct folder *f)
{
    folder_rwkv(f);
}

void archs_plamo2(const struct folder *f)
{
    folder_plamo2(f);
}
