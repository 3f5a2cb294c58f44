/* SPDX-License-Identifier: MIT */
/* check.c - findings: --check, and warnings without it */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/markdown.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/style.h"

#include <gguf/verify.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct findings {
    const struct info_options *o;
    const struct load *load;
    struct json *j; /* NULL: text */
    struct progress bar;
    size_t n[3]; /* count of each severity */
    size_t n_shown;
};

static size_t count_shards(const struct load *l)
{
    return l->file ? gguf_file_n_shards(l->file) : 1;
}

/* Index of the file of a finding in its set. */
static size_t file_no(const struct load *l, const struct gguf_finding *x)
{
    size_t i = count_shards(l);
    while (i > 1 && gguf_file_shard(l->file, i - 1) != x->file)
        i--;
    return i - 1;
}

/* Write the byte of a finding if it is known and not part of the message. */
static void offset_text(char out[40], const struct gguf_finding *x)
{
    out[0] = '\0';
    if (x->offset != GGUF_NO_OFFSET && !strstr(x->message, "byte "))
        snprintf(out, 40, " (byte %" PRIu64 ")", x->offset);
}

static void print_finding(struct findings *f, const struct gguf_finding *x)
{
    static const enum style styles[] = {
        [GGUF_SEVERITY_ERROR] = STYLE_ERROR,
        [GGUF_SEVERITY_WARNING] = STYLE_WARNING,
        [GGUF_SEVERITY_NOTE] = STYLE_NOTE,
    };
    char byte[40];
    if (x->severity == GGUF_SEVERITY_NOTE && f->o->quiet)
        return;
    f->n_shown++;
    offset_text(byte, x);
    printf("%s%s%s%s: %s: ", f->o->markdown ? "- " : "  ",
           style(styles[x->severity]), gguf_severity_name(x->severity),
           style(STYLE_PLAIN), x->code);
    if (count_shards(f->load) > 1)
        printf("file %zu: ", file_no(f->load, x) + 1);
    if (f->o->markdown)
        markdown_put(stdout, x->message, false);
    else
        fputs(x->message, stdout);
    puts(byte);
}

static void print_json(struct findings *f, const struct gguf_finding *x)
{
    json_open(f->j, NULL, '{');
    json_strz(f->j, "severity", gguf_severity_name(x->severity));
    json_strz(f->j, "code", x->code);
    if (x->name.size)
        json_str(f->j, "name", x->name);
    if (x->offset != GGUF_NO_OFFSET)
        json_u64(f->j, "offset", x->offset);
    json_strz(f->j, "message", x->message);
    json_u64(f->j, "file", file_no(f->load, x));
    json_close(f->j);
}

static bool on_finding(void *user, const struct gguf_finding *x)
{
    struct findings *f = user;
    f->n[x->severity]++;
    progress_clear(&f->bar);
    if (f->j)
        print_json(f, x);
    else
        print_finding(f, x);
    return 0;
}

static void begin_findings(const struct findings *f)
{
    if (f->j)
        json_open(f->j, "findings", '[');
    else
        info_heading("Findings", f->o);
}

static void end_findings(const struct findings *f)
{
    if (f->j)
        json_close(f->j);
    else
        printf("%s%zu error%s, %zu warning%s, %zu note%s%s\n",
               !f->o->markdown ? "  "
               : f->n_shown    ? "\n"
                               : "",
               f->n[GGUF_SEVERITY_ERROR], text_s(f->n[GGUF_SEVERITY_ERROR]),
               f->n[GGUF_SEVERITY_WARNING],
               text_s(f->n[GGUF_SEVERITY_WARNING]), f->n[GGUF_SEVERITY_NOTE],
               text_s(f->n[GGUF_SEVERITY_NOTE]),
               f->o->check_header ? " (tensor data was not read)" : "");
}

bool info_check(struct json *j, const struct info *info,
                const struct info_options *o)
{
    struct findings f = { .o = o, .load = info->load, .j = j };
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    struct gguf_error err;
    p.payload = !o->check_header;
    p.pool = o->pool;
    p.progress.fn = progress_report;
    p.progress.user = &f.bar;
    progress_init(&f.bar, "checking", NULL, o->quiet);
    begin_findings(&f);
    bool good =
        gguf_file_verify(f.load->file, &p,
                         (struct gguf_finding_callback){ on_finding, &f },
                         &err) == GGUF_OK;
    progress_clear(&f.bar);
    if (!good)
        msg_fail(f.load->path, &err);
    end_findings(&f);
    return good && !f.n[GGUF_SEVERITY_ERROR];
}

/* Print the only finding of a file that does not open. */
static bool first_finding(void *user, const struct gguf_finding *x)
{
    struct findings *f = user;
    if (f->j) {
        json_open(f->j, NULL, '{');
        json_strz(f->j, "path", f->load->path);
    } else {
        info_title(f->load->path, f->o);
    }
    begin_findings(f);
    on_finding(f, x);
    end_findings(f);
    if (f->j)
        json_close(f->j);
    return 0;
}

bool info_broken(struct json *j, const char *path,
                 const struct info_options *o,
                 const struct gguf_file_params *params)
{
    struct load none = { .path = path };
    struct findings f = { .o = o, .load = &none, .j = o->json ? j : NULL };
    struct gguf_error err;
    progress_init(&f.bar, "checking", NULL, true);
    return gguf_path_verify(
               path, params, NULL,
               (struct gguf_finding_callback){ first_finding, &f },
               &err) == GGUF_OK &&
           f.n[GGUF_SEVERITY_ERROR];
}

/* ---- warnings ---- */

enum { MAX_WARNINGS = 10 };

static bool on_warning(void *user, const struct gguf_finding *x)
{
    size_t *n = user;
    char byte[40];
    /* load_open() has warned about a broken set, or --alone was given */
    if (x->severity == GGUF_SEVERITY_NOTE || !strcmp(x->code, "broken-set") ||
        (*n)++ >= MAX_WARNINGS)
        return 0;
    offset_text(byte, x);
    msg_warn(gguf_file_path(x->file), "%s%s", x->message, byte);
    return 0;
}

void info_warn(const struct info *info)
{
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    struct gguf_error err;
    size_t n = 0;
    p.quick = 1;
    if (gguf_file_verify(info->load->file, &p,
                         (struct gguf_finding_callback){ on_warning, &n },
                         &err) != GGUF_OK)
        msg_fail(info->load->path, &err);
    if (n > MAX_WARNINGS)
        msg_warn(info->load->path, "%zu more warnings: see --check",
                 n - MAX_WARNINGS);
}
