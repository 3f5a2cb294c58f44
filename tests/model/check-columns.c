/* SPDX-License-Identifier: MIT */
/* check-columns.c - each column of the table of architectures, and each
 * enumerator, is used by three rows or more */
#include "config.h"
#include "base/compiler.h"
#include "model/arch.h"
#include "tests/tap.h"

#include <stddef.h>

enum { LEAST = 3 };

/* Numeric columns, and the number of enumerators of those that have a list. */
static const struct {
    const char *name;
    size_t off, size;
    const char *const *values;
    size_t n_values;
} columns[] = {
#define X(ID, TEXT) #ID,
#define COLUMN(MEMBER)                                                        \
    {                                                                         \
#MEMBER, offsetof(struct gg_arch, MEMBER),                            \
            sizeof((struct gg_arch *)0)->MEMBER, NULL, 0                      \
    }
#define CHOICE(MEMBER, LIST)                                                  \
    {                                                                         \
#MEMBER, offsetof(struct gg_arch, MEMBER),                            \
            sizeof((struct gg_arch *)0)->MEMBER,                              \
            (const char *const[]){ LIST(X) },                                 \
                                   GG_LEN(((const char *const[]){ LIST(X) })) \
    }
    COLUMN(runs),
    CHOICE(order, GG_ORDER_LIST),
    CHOICE(norm, GG_NORM_LIST),
    COLUMN(norm_b),
    COLUMN(norm_eps_maybe),
    COLUMN(mix_norm.pre),
    COLUMN(mix_norm.post),
    COLUMN(mix_norm.add),
    COLUMN(ffn_norm.pre),
    COLUMN(ffn_norm.post),
    COLUMN(ffn_norm.add),
    COLUMN(final_norm),
    COLUMN(qkv_b),
    COLUMN(out_b),
    CHOICE(qk_norm.form, GG_QK_LIST),
    COLUMN(qk_norm.kind),
    COLUMN(qk_norm.bias),
    COLUMN(qk_norm.optional),
    COLUMN(qk_norm.after_rope),
    COLUMN(rope),
    COLUMN(mrope_sections),
    COLUMN(rope_freqs),
    COLUMN(longrope),
    COLUMN(window.key),
    COLUMN(window.period),
    COLUMN(sinks),
    COLUMN(clamp_qkv),
    COLUMN(alibi),
    COLUMN(bidirectional),
    COLUMN(whole_sequence),
    COLUMN(ffn_b),
    CHOICE(moe.gating, GG_GATING_LIST),
    COLUMN(moe.gating_key),
    COLUMN(moe.expert_bias),
    COLUMN(moe.norm),
    COLUMN(moe.scale),
    COLUMN(moe.plain),
    COLUMN(moe.shared_gate),
    COLUMN(embd_norm),
    COLUMN(position),
    COLUMN(types),
    CHOICE(output, GG_OUTPUT_LIST),
    COLUMN(output_b),
    COLUMN(residual_scale),
    COLUMN(nextn),
#undef X
};

/* Count the rows whose column is value; value 0: any value but 0. */
static size_t count_rows(size_t column, unsigned value)
{
    size_t n = 0;
    for (const struct gg_arch *a = NULL; (a = gg_arch_next(a));) {
        const unsigned char *p =
            (const unsigned char *)a + columns[column].off;
        unsigned any = 0;
        for (size_t i = 0; i < columns[column].size; i++)
            any |= p[i];
        n += value ? p[0] == value : any != 0;
    }
    return n;
}

static void check_columns(void)
{
    for (size_t i = 0; i < GG_LEN(columns); i++) {
        const size_t n = count_rows(i, 0);
        ok(n >= LEAST, "%s: %zu rows", columns[i].name, n);
        for (unsigned v = 1; v < columns[i].n_values; v++) {
            const size_t k = count_rows(i, v);
            ok(k >= LEAST, "%s %s: %zu rows", columns[i].name,
               columns[i].values[v], k);
        }
    }
}

/* ---- are these all? ---- */

/* Is a member whose name ends like this a column of the table above? */
static int is_column(const char *member)
{
    for (size_t i = 0; i < GG_LEN(columns); i++) {
        const char *dot = strrchr(columns[i].name, '.');
        if (!strcmp(dot ? dot + 1 : columns[i].name, member))
            return 1;
    }
    return 0;
}

/* Find numeric members of the row's structs in the text of arch.h. */
static void check_header(void)
{
    static const char *const kinds[] = { "    uint8_t ", "    uint16_t ",
                                         "    int8_t ", "    bool ",
                                         "    float " };
    static const char *const structs[] = {
        "struct gg_model_norms {", "struct gg_model_qk_norm {",
        "struct gg_model_windows {", "struct gg_moe {", "struct gg_arch {"
    };
    const char *top = getenv("srcdir");
    char path[4096], line[256], lacks[64] = "";
    size_t n = 0;
    int inside = 0;
    snprintf(path, sizeof path, "%s/lib/model/arch.h", top ? top : ".");
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        for (size_t i = 0; i < GG_LEN(structs); i++)
            inside |= !strncmp(line, structs[i], strlen(structs[i]));
        inside &= strncmp(line, "};", 2) != 0;
        for (size_t i = 0; inside && i < GG_LEN(kinds); i++) {
            const char *name = line + strlen(kinds[i]);
            if (strncmp(line, kinds[i], strlen(kinds[i])) != 0)
                continue;
            char word[64] = "";
            snprintf(
                word, sizeof word, "%.*s",
                (int)strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789"),
                name);
            n++;
            if (!is_column(word))
                memcpy(lacks, word, sizeof lacks);
        }
    }
    if (f)
        fclose(f);
    ok(n >= 35 && !*lacks, "%zu numbers of arch.h are counted here%s%s", n,
       *lacks ? ", but not " : "", lacks);
}

int main(void)
{
    check_columns();
    check_header();
    return done_testing();
}
