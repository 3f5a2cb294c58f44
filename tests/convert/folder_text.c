/* SPDX-License-Identifier: MIT */
/* folder_text.c - reads descriptions of folders */
#include "config.h"
#include "tests/convert/folder_text.h"

#include "tests/family/skeleton.h"
#include "tests/slurp.h"
#include "tests/source.h"

#include <stdlib.h>
#include <string.h>

static void make_wordpiece(const struct folder *f)
{
    folder_wordpiece(f, true);
}

static void make_spiece(const struct folder *f)
{
    folder_unigram(f, FOLDER_UGM_SPIECE);
}

static void make_unigram(const struct folder *f)
{
    folder_unigram(f, FOLDER_UGM_JSON);
}

static const struct {
    const char *name;
    void (*make)(const struct folder *f);
} vocabs[] = {
    { "wordpiece", make_wordpiece }, { "spiece", make_spiece },
    { "unigram", make_unigram },     { "rwkv", folder_rwkv },
    { "plamo2", folder_plamo2 },     { "ranked", folder_ranked },
};

/* ---- config.json ---- */

/* End of the member at p: a ',' outside of brackets and texts, or the end. */
static const char *member_end(const char *p)
{
    bool quoted = false;
    for (int depth = 0; *p && (*p != ',' || depth || quoted); p++) {
        quoted = quoted != (*p == '"');
        depth += !quoted && (*p == '{' || *p == '[');
        depth -= !quoted && (*p == '}' || *p == ']');
    }
    return p;
}

/* Remove the member that begins like name, up to its second quote. */
static void remove_member(char *config, const char *name)
{
    const size_t n = (size_t)(strchr(name + 1, '"') - name) + 1;
    for (char *p = config; *p;) {
        char *end = (char *)member_end(p);
        char *next = *end ? end + 1 : end;
        if (strncmp(p, name, n) != 0)
            p = next;
        else
            memmove(p, next, strlen(next) + 1);
    }
    if (*config && config[strlen(config) - 1] == ',')
        config[strlen(config) - 1] = 0;
}

static void set_members(struct folder_text *t, const char *members)
{
    for (const char *p = members; *p;) {
        while (*p == ' ')
            p++;
        const char *end = member_end(p);
        if (end > p) {
            remove_member(t->config, p);
            snprintf(t->config + strlen(t->config),
                     sizeof t->config - strlen(t->config), "%s%.*s",
                     *t->config ? "," : "", (int)(end - p), p);
        }
        p = *end ? end + 1 : end;
    }
}

/* ---- tensors ---- */

/* Expand the first {...} of a line to each word, or each number, and add the
 * lines to lines. */
static void add_lines(char *lines, size_t size, const char *line)
{
    const char *begin = strchr(line, '{'), *end = strchr(line, '}');
    const size_t n = strlen(lines);
    char one[400];
    int a = 0, b = 0, used = 0;
    if (!begin || !end) {
        snprintf(lines + n, size - n, "%s\n", line);
        return;
    }
    const bool numbers =
        sscanf(begin, "{%d-%d}%n", &a, &b, &used) == 2 && used;
    for (const char *p = begin; numbers ? a <= b : p < end; a++) {
        const size_t k = numbers ? 0 : strcspn(p + 1, ",}");
        char number[16];
        snprintf(number, sizeof number, "%d", a);
        snprintf(one, sizeof one, "%.*s%.*s%s", (int)(begin - line), line,
                 numbers ? 15 : (int)k, numbers ? number : p + 1, end + 1);
        add_lines(lines, size, one);
        p += k + 1;
    }
}

static void add_tensor(struct folder_text *t, const char *prefix,
                       const char *line)
{
    char whole[400];
    snprintf(whole, sizeof whole, "%.150s%.240s", prefix, line);
    add_lines(t->tensors, sizeof t->tensors, whole);
}

static void remove_one(char *tensors, const char *name, size_t n)
{
    for (char *p = tensors; *p;) {
        char *next = strchr(p, '\n') + 1;
        if (!strncmp(p, name, n) && p[n] == ' ')
            memmove(p, next, strlen(next) + 1);
        else
            p = next;
    }
}

static void remove_tensors(struct folder_text *t, const char *name)
{
    char names[4000] = "";
    add_lines(names, sizeof names, name);
    for (const char *p = names; *p; p += strcspn(p, "\n") + 1)
        remove_one(t->tensors, p, strcspn(p, "\n"));
}

/* ---- blocks ---- */

static char *blocks; /* text of tests/family/blocks.txt */

/* Copy the next line of *p, with its continuation lines, to out. false: it was
 * the last one of the section. */
static bool next_line(const char **p, char out[2000])
{
    size_t n = 0;
    if (!**p || **p == '[')
        return false;
    do {
        const size_t k = strcspn(*p, "\n"), blanks = strspn(*p, " ");
        n += (size_t)snprintf(out + n, 2000 - n, "%s%.*s",
                              n && out[n - 1] != ',' ? " " : "",
                              (int)(k - blanks), *p + blanks);
        *p += k + ((*p)[k] == '\n');
    } while (**p == ' ' && n < 2000);
    return true;
}

/* Lines of a block; NULL: unknown. */
static const char *find_block(const char *name)
{
    char heading[80];
    snprintf(heading, sizeof heading, "\n[%s]\n", name);
    const char *p = blocks ? strstr(blocks, heading) : NULL;
    return p ? p + strlen(heading) : NULL;
}

bool folder_text_set(struct folder_text *t, const char *line)
{
    char all[4000], name[40], member[2000];
    size_t n = 0;
    for (const char *p = line; *p && n < sizeof all - 1;) {
        if (*p != '@') {
            all[n++] = *p++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ",}") - 1, p + 1);
        const char *block = find_block(name);
        if (!block)
            return false;
        while (next_line(&block, member))
            n += (size_t)snprintf(all + n, sizeof all - n, "%s", member);
        p += strlen(name) + 1;
    }
    all[n] = 0;
    set_members(t, all);
    return true;
}

static bool add_block(struct folder_text *t, const char *name, const char *at)
{
    static const char layer[] = "model.layers.%.", top[] = "model.";
    const char *p = find_block(name);
    char line[2000];
    if (!p)
        return false;
    while (next_line(&p, line)) {
        const char *from = !strncmp(line, layer, strlen(layer)) ? layer : top;
        if (*line == '"')
            set_members(t, line);
        else if (at && !strncmp(line, from, strlen(from)))
            add_tensor(t, at, line + strlen(from));
        else if (*line)
            add_tensor(t, "", line);
    }
    return true;
}

/* Read "NAME ... [at P]". */
static bool use_blocks(struct folder_text *t, char *words)
{
    char *at = strstr(words, " at ");
    if (at) {
        *at = 0;
        at += 4;
        at = !strcmp(at, "-") ? at + 1 : at;
    }
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        if (!add_block(t, w, at))
            return false;
    return true;
}

/* ---- lines ---- */

struct reader {
    struct folder_text folder[20]; /* folders of the current text */
    size_t n;
    char prefix[128]; /* prefix of the next tensors' names */
};

static bool begin_like(struct reader *r, const char *class_name)
{
    struct folder_text *t = &r->folder[r->n - 1];
    for (size_t i = r->n - 1; i-- > 0;)
        if (!strcmp(r->folder[i].class_name, class_name)) {
            strcpy(t->config, r->folder[i].config);
            strcpy(t->tensors, r->folder[i].tensors);
            return true;
        }
    return false;
}

static void leave_out(struct folder_text *t, char *words)
{
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        if (*w == '"')
            remove_member(t->config, w);
        else
            remove_tensors(t, w);
}

static bool set_vocab(struct folder_text *t, const char *name)
{
    for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++)
        if (!strcmp(vocabs[i].name, name))
            t->vocab = vocabs[i].make;
    return t->vocab != NULL;
}

static bool add_text(char list[4][400], size_t *n, const char *text)
{
    if (*n == 4)
        return false;
    snprintf(list[(*n)++], 400, "%s", text);
    return true;
}

/* Add a line "KEY SEPARATOR VALUE" to a list. */
static bool add_line(struct folder_line *list, size_t *n, const char *text,
                     const char *separator)
{
    const char *end = strstr(text, separator);
    if (*n == FOLDER_MOST_LINES)
        return false;
    struct folder_line *l = &list[(*n)++];
    snprintf(l->key, sizeof l->key, "%.*s",
             end ? (int)(end - text) : (int)strlen(text), text);
    snprintf(l->value, sizeof l->value, "%s",
             end ? end + strlen(separator) : "");
    return true;
}

static bool read_line(struct reader *r, char *line)
{
    struct folder_text *t = &r->folder[r->n - 1];
    char *rest = line + strcspn(line, " ");
    rest += *rest == ' ';
    if (!*line || *line == '#')
        return true;
    if (*line == '"')
        return folder_text_set(t, line);
    if (strstr(line, " = "))
        return add_line(t->number, &t->n_numbers, line, " = ");
    if (!strncmp(line, "key ", 4))
        return add_line(t->key, &t->n_keys, rest, " ");
    if (!strncmp(line, "use ", 4))
        return use_blocks(t, rest);
    if (!strncmp(line, "like ", 5))
        return begin_like(r, rest);
    if (!strncmp(line, "vocab ", 6))
        return set_vocab(t, rest);
    if (!strncmp(line, "order ", 6))
        return add_text(t->order, &t->n_orders, rest);
    if (!strncmp(line, "refuse ", 7))
        return add_text(t->refuse, &t->n_refuse, rest);
    if (!strncmp(line, "layers ", 7))
        return (t->layers = atoi(rest)) > 0;
    if (*line == '-')
        add_lines(t->left, sizeof t->left, line + 1);
    else if (!strncmp(line, "without ", 8))
        leave_out(t, rest);
    else if (!strncmp(line, "in ", 3))
        snprintf(r->prefix, sizeof r->prefix, "%s",
                 strcmp(rest, "-") ? rest : "");
    else
        add_tensor(t, r->prefix, line);
    return true;
}

/* Architecture of the model that begins a text. */
static void read_arch(const char *text, char out[64])
{
    static const char key[] = "key general.architecture str ";
    const char *p = strstr(text, key);
    p = p ? p + strlen(key) : "";
    snprintf(out, 64, "%.*s", (int)strcspn(p, "\n"), p);
}

/* Begin a folder at its heading, "[WORD CLASS NAME]". */
static bool begin_folder(struct reader *r, const char *p, const char *arch)
{
    if (r->n == sizeof r->folder / sizeof *r->folder)
        return false;
    struct folder_text *t = &r->folder[r->n++];
    *t = (struct folder_text){ .layers = FOLDER_LAYERS };
    *r->prefix = 0;
    snprintf(t->arch, sizeof t->arch, "%s", arch);
    return sscanf(p, "[%*s %63[^] ] %127[^]]", t->class_name, t->published) >=
           1;
}

static bool is_full(const struct folder_text *t)
{
    return strlen(t->config) + 1 == sizeof t->config ||
           strlen(t->tensors) + 1 == sizeof t->tensors ||
           strlen(t->left) + 1 == sizeof t->left;
}

/* Read the folders of one text, or its published ones. */
static bool read_text(struct reader *r, const char *text, bool published)
{
    const char *heading = published ? "\n[published " : "\n[folder ";
    char arch[64], line[2000];
    const char *p = text;
    read_arch(text, arch);
    r->n = 0;
    while ((p = strstr(p, heading)) != NULL) {
        if (!begin_folder(r, p + 1, arch))
            return false;
        for (p = strchr(p + 1, '\n') + 1; next_line(&p, line);)
            if (!read_line(r, line)) {
                printf("# %s: cannot read: %s\n",
                       r->folder[r->n - 1].class_name, line);
                return false;
            }
        if (is_full(&r->folder[r->n - 1]))
            return false;
        p--; /* end of the line before a heading */
    }
    return true;
}

/* ---- all texts ---- */

bool folder_text_each(bool published,
                      void (*fn)(const struct folder_text *t, void *user),
                      void *user)
{
    static struct reader r;
    static char names[400][64];
    const size_t n = skeleton_names(names, 400);
    bool good = true;
    if (!blocks)
        blocks = slurp(source_path("tests/family/blocks.txt"), NULL);
    for (size_t i = 0; i < n; i++) {
        char path[4400];
        char *text = skeleton_path(names[i], path) ? slurp(path, NULL) : NULL;
        const bool read = text && read_text(&r, text, published);
        if (!read)
            printf("# the folders of %s cannot be read\n", names[i]);
        for (size_t k = 0; read && k < r.n; k++)
            fn(&r.folder[k], user);
        good = good && read;
        free(text);
    }
    return good;
}

struct search {
    const char *class_name;
    struct folder_text *out;
    bool found;
};

static void compare_class(const struct folder_text *t, void *user)
{
    struct search *s = user;
    if (!s->found && !strcmp(t->class_name, s->class_name))
        *s->out = *t;
    s->found = s->found || !strcmp(t->class_name, s->class_name);
}

const struct folder_text *folder_text_find(const char *class_name)
{
    static struct folder_text found;
    struct search s = { class_name, &found, false };
    folder_text_each(false, compare_class, &s);
    if (s.found)
        return &found;
    printf("Bail out! no folder of %s\n", class_name);
    exit(99);
}

void folder_text_make(const struct folder_text *t, const char *dir, bool pairs,
                      struct folder *out)
{
    char config[5000];
    folder_begin(out, dir);
    snprintf(config, sizeof config, "{\"architectures\":[\"%s\"],%s}",
             t->class_name, t->config);
    folder_text(out, "config.json", config);
    folder_tensors(out, t->tensors, t->layers, FOLDER_EXPERTS);
    folder_tensors(out, t->left, t->layers, FOLDER_EXPERTS);
    out->sparse = *t->published;
    if (t->vocab)
        t->vocab(out);
    else
        folder_bpe(out, pairs);
}
