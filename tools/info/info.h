/* SPDX-License-Identifier: MIT */
/* info.h - what the views of a model share */
#ifndef TOOLS_INFO_INFO_H
#define TOOLS_INFO_INFO_H

#include "tools/common/json.h"
#include "tools/common/load.h"
#include "tools/common/table.h"
#include "tools/common/text.h"

#include <gguf/model_base.h>
#include <gguf/stats.h>

/* Parts of the output. */
enum {
    SHOW_SUMMARY = 1,
    SHOW_METADATA = 2,
    SHOW_TENSORS = 4,
    SHOW_TYPES = 8,
    SHOW_ALL = 15, /* what is shown without being asked for */
    SHOW_STATS = 16,
    SHOW_CHECK = 32,
    SHOW_HASH = 64,
    SHOW_MEMORY = 128
};

enum info_limits { INFO_ARRAYS = 1, INFO_STRINGS = 2 };

struct info_options {
    unsigned show; /* SHOW_...; 0: all */
    bool json, markdown, alone, quiet;
    bool diff;             /* of two models */
    bool lines;            /* a line for each file */
    unsigned limits_given; /* of enum info_limits */
    struct text_limits limits;
    const char *glob;     /* tensors to list; NULL: all */
    int sort;             /* INFO_BY_... */
    const char *key;      /* NULL: no single value */
    bool raw;             /* its bytes */
    const char *values;   /* NULL, or the tensor whose values to print */
    const char *manifest; /* NULL, or the file to compare with */
    uint64_t n_ctx;       /* for --memory; 0: the model's */
    uint32_t cache_dtype; /* likewise, of keys and values */
    int hash;             /* enum gguf_digest_algo */
    bool check_header;    /* --check leaves tensor data alone */
    int color;            /* enum style_when */
    unsigned n_threads;   /* 0: all processors */
    struct gguf_limits file_limits;
    struct gguf_pool *pool; /* for what reads data */
    struct gguf_rows *rows; /* likewise */
};

/* What --sort orders by. */
enum {
    INFO_BY_PLACE, /* in the file */
    INFO_BY_NAME,
    INFO_BY_SIZE,
    INFO_BY_TYPE,
    INFO_BY_ELEMENTS,
    INFO_BY_OFFSET
};

/* What the command line says, and how many operands there are, from argv[1] on;
 * ends the program where something is wrong. */
int info_parse_options(struct info_options *o, int argc, char **argv);

/* What the data of one type amounts to. */
struct info_type {
    uint32_t id;
    uint64_t n_tensors, n_elements, size;
};

/* A model's numbers, and which of its tensors are listed in which order. */
struct info {
    const struct load *load;
    uint64_t n_elements, data_size, file_size;
    struct info_type *types; /* by descending size */
    size_t n_types, room_types;
    uint32_t *list; /* tensor numbers */
    size_t n_list;
    const char *file_type; /* NULL: the file does not say */
};

void info_init(struct info *info, const struct load *load,
               const struct info_options *o);
void info_fini(struct info *info);

/* "Q4_K"; "unknown 152" and "removed 4" into out, which holds 32 bytes. */
const char *info_type_name(uint32_t id, char *out);

/* Bits of data for each element, or 0 if there are none. */
double info_bits(uint64_t size, uint64_t n_elements);

/* A hyperparameter: "ARCH.suffix", or NULL (see gguf_hparam_at). */
const struct gguf_kv *info_hparam(const struct info *info, const char *suffix);
/* Tokens of the vocabulary, 0 if there is none. */
uint64_t info_n_vocab(const struct info *info);

/* Warnings, to standard error. */
void info_warn(const struct info *info);

/* The line above all text. */
void info_title(const char *path, const struct info_options *o);
/* A line above a part of the text. */
void info_heading(const char *text, const struct info_options *o);

/* Print the table and free it. */
void info_table(struct table *t, const struct info_options *o);

/* The views. false: what was asked for failed or found errors. */
bool info_text(const struct info *info, const struct info_options *o);
bool info_json(struct json *j, const struct info *info,
               const struct info_options *o);
void info_json_value(struct json *j, const struct gguf_kv *kv,
                     uint64_t max_elems);

/* What the model takes in memory. */
void info_memory(struct json *j, const struct info *info,
                 const struct info_options *o);

/* What reads tensor data. j: inside the object, or NULL for text. false: it
 * failed, or errors were found. */
bool info_check(struct json *j, const struct info *info,
                const struct info_options *o);
/* Findings about a file that does not open. false: nothing was printed, since
 * its contents are not the reason. */
bool info_broken(struct json *j, const char *path,
                 const struct info_options *o,
                 const struct gguf_file_params *params);
bool info_stats(struct json *j, const struct info *info,
                const struct info_options *o);
bool info_hash(struct json *j, const struct info *info,
               const struct info_options *o);
bool info_manifest(const struct load *load, const struct info_options *o);
bool info_values(const struct load *load, const struct info_options *o);
bool info_diff(const struct load *a, const struct load *b,
               const struct info_options *o, bool *same);

/* A table of all files, a line each; false: one does not open. */
bool info_lines(char *const *path, int n, const struct info_options *o,
                const struct gguf_file_params *params);

/* One value for a script; false: there is no such key, or with raw: it is not
 * a string. */
bool info_key(const struct load *load, const struct info_options *o);

#endif
