/* SPDX-License-Identifier: MIT */
/* check-published.c - folders with the names that models are published with
 *
 * published.txt has them, and says what each line means. Of each model a folder
 * of zeros is made; every tensor must have a place in a file, or be left out if
 * it carries nothing; and the file must be a sound one of its architecture.
 */
#include "config.h"
#include "gguf/convert.h"
#include "gguf/verify.h"
#include "tests/convert/findings.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

enum { LINE = 4000, NAMES = 1024 };

static char top[200];
static char defined[128][2000]; /* by letter */
static struct folder folder;
static char left[NAMES][128]; /* names that carry nothing */
static size_t n_left;

/* ---- the text ---- */

/* $X as defined. */
static void replace(char *line)
{
    static char out[4 * LINE];
    size_t n = 0;
    for (const char *p = line; *p; p++)
        if (*p == '$' && defined[p[1] & 127][0])
            n += (size_t)sprintf(out + n, "%s", defined[*++p & 127]);
        else
            out[n++] = *p;
    out[n] = 0;
    if (n >= LINE)
        exit(99);
    memcpy(line, out, n + 1);
}

static void add(const char *line)
{
    if (*line == '-' && n_left < NAMES)
        snprintf(left[n_left++], sizeof *left, "%.*s",
                 (int)strcspn(line + 1, " "), line + 1);
    if (folder.n_tensors + 1 >= sizeof folder.tensor / sizeof *folder.tensor)
        exit(99);
    folder_tensors(&folder, line + (*line == '-'), 0, 0);
}

/* A line of tensors: of the first {...} each word, or each number. */
static void expand(const char *line)
{
    const char *begin = strchr(line, '{'), *end = strchr(line, '}');
    char one[400];
    int a, b, used = 0;
    if (!begin || !end) {
        add(line);
        return;
    }
    if (sscanf(begin, "{%d-%d}%n", &a, &b, &used) == 2 && used) {
        for (; a <= b; a++) {
            snprintf(one, sizeof one, "%.*s%d%s", (int)(begin - line), line, a,
                     end + 1);
            expand(one);
        }
        return;
    }
    for (const char *p = begin; p < end;) {
        const size_t n = strcspn(p + 1, ",}");
        snprintf(one, sizeof one, "%.*s%.*s%s", (int)(begin - line), line,
                 (int)n, p + 1, end + 1);
        expand(one);
        p += n + 1;
    }
}

/* ---- the folder ---- */

static bool is_left(const char *name)
{
    for (size_t i = 0; i < n_left; i++)
        if (!strcmp(left[i], name))
            return true;
    return false;
}

/* Of the first that is left out and should not be, or the other way round. */
static const char *wrong_name(const struct gguf_convert *c)
{
    size_t used = 0;
    for (size_t i = 0; i < gguf_convert_n_left(c); i++)
        if (!is_left(gguf_convert_left(c, i)))
            return gguf_convert_left(c, i);
    for (size_t i = 0; i < gguf_convert_n_tensors(c); i++)
        for (size_t k = 0; k < gguf_convert_tensor(c, i)->n_from; k++, used++)
            if (is_left(gguf_convert_from(c, i, k)))
                return gguf_convert_from(c, i, k);
    return gguf_convert_n_left(c) == n_left ? NULL : "not all are left out";
}

static bool is_arch(const struct gguf_convert *c, const char *arch)
{
    struct gguf_str name = { "", 0 };
    const struct gguf_kv *kv =
        gguf_meta_find(gguf_convert_meta(c), "general.architecture");
    if (kv)
        (void)gguf_kv_get_str(kv, &name, NULL);
    return name.size == strlen(arch) && !memcmp(name.data, arch, name.size);
}

static void check(const char *label, const char *arch, const char *vocab)
{
    struct gguf_convert *c = NULL;
    struct gguf_file *file = NULL;
    struct findings seen = { 0, "" };
    struct gguf_error e;
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    folder.sparse = true;
    folder_weights(&folder, "BF16", 1);
    if (!strcmp(vocab, "wordpiece"))
        folder_wordpiece(&folder, true);
    else if (!strcmp(vocab, "unigram"))
        folder_unigram(&folder, FOLDER_UGM_SPIECE);
    else if (!strcmp(vocab, "rwkv"))
        folder_rwkv(&folder);
    else if (!strcmp(vocab, "plamo2"))
        folder_plamo2(&folder);
    else
        folder_bpe(&folder, true);
    enum gguf_status st = gguf_convert_open(&c, folder.dir, NULL, &e);
    ok(st == GGUF_OK, "%s is planned: %s", label, e.message);
    if (st == GGUF_OK) {
        const char *wrong = wrong_name(c);
        ok(!wrong, "%s: every name has its place: %s", label,
           wrong ? wrong : "");
        ok(is_arch(c, arch), "%s: it becomes %s", label, arch);
    }
    gguf_convert_close(c);
    if (st == GGUF_OK)
        st = folder_convert(folder.dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&file, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_verify(file, NULL, findings_note, &seen, &e);
    ok(st == GGUF_OK && !seen.n_errors, "%s: a sound file: %s%s", label,
       e.message, seen.first);
    gguf_file_close(file);
    scratch_clean(top);
}

/* ---- blocks ---- */

struct block {
    char label[200], class_name[80], arch[40], vocab[20];
    bool has_config;
};

static void end(struct block *b)
{
    if (b->has_config)
        check(b->label, b->arch, b->vocab);
    *b = (struct block){ .has_config = false };
}

static void begin(struct block *b, const char *line)
{
    int n = 0;
    if (sscanf(line, "= %79s %39s %19s %n", b->class_name, b->arch, b->vocab,
               &n) != 3)
        exit(99);
    snprintf(b->label, sizeof b->label, "%s (%.100s)", b->class_name,
             line + n);
    folder_begin(&folder, scratch_path(top, "folder"));
    n_left = 0;
}

static void config(struct block *b, const char *line)
{
    char text[2 * LINE + 200];
    snprintf(text, sizeof text, "{\"architectures\":[\"%s\"],%s}",
             b->class_name, line);
    folder_text(&folder, "config.json", text);
    b->has_config = true;
}

int main(void)
{
    static char line[2 * LINE], path[600];
    struct block b = { .has_config = false };
    struct folder f;
    const char *src = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/convert/published.txt",
             src ? src : ".");
    FILE *in = fopen(path, "r");
    if (!in)
        return 99;
    snprintf(top, sizeof top, "check-published.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    while (fgets(line, LINE, in)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "define ", 7)) {
            snprintf(defined[line[7] & 127], sizeof *defined, "%.1999s",
                     line + 9);
            continue;
        }
        replace(line);
        if (!*line)
            end(&b);
        else if (*line == '=')
            begin(&b, line);
        else if (*line == '"')
            config(&b, line);
        else if (*line != '#')
            expand(line);
    }
    end(&b);
    fclose(in);
    rmdir(top);
    return done_testing();
}
