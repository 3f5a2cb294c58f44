/* SPDX-License-Identifier: MIT */
/* gguf-info - show the contents of GGUF files */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/remote.h"
#include "base/os/os_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check that the file allows the requested view. A model on a server allows
 * views of the header, and of data that is read once in order. Returns false
 * after a message. */
static bool can_show(const struct load *l, const struct info_options *o)
{
    const char *what = o->values              ? "--values"
                       : o->diff              ? "--diff"
                       : o->show & SHOW_STATS ? "--stats"
                       : o->show & SHOW_CHECK ? "--check"
                                              : NULL;
    const bool header = what && !strcmp(what, "--check") && o->check_header;
    if (!what || header || !gguf_file_has_reader(l->file))
        return true;
    return msg_error(
        l->path,
        "%s reads tensor data in no order, which a network makes slow: "
        "download the file first%s",
        what, (o->show & SHOW_CHECK) ? ", or use --check=header" : "");
}

/* Show one operand. *opened: something was shown. false: it failed. */
static bool show_file(const char *path, const struct info_options *o,
                      const struct gguf_file_params *params, struct json *j,
                      struct load_seen *seen, bool *opened)
{
    struct load l;
    struct info info;
    struct gguf_error err;
    bool good = true;
    *opened = load_try(&l, path, !o->alone, params, &err);
    if (!*opened) {
        msg_fail(path, &err);
        good = false;
        *opened = (o->show & SHOW_CHECK) && info_broken(j, path, o, params);
    } else if (!can_show(&l, o)) {
        good = false;
    } else if (o->key) {
        good = info_key(&l, o);
    } else if (o->values) {
        good = info_values(&l, o);
    } else if (o->manifest) {
        good = info_manifest(&l, o);
    } else {
        info_init(&info, &l, o);
        if (!o->quiet && !(o->show & SHOW_CHECK))
            info_warn(&info);
        good = o->json ? info_json(j, &info, o) : info_text(&info, o);
        if (o->glob && !info.n_list) {
            msg_error(path, "no tensor's name matches '%s'", o->glob);
            good = false;
        }
        info_fini(&info);
    }
    load_remember(seen, &l);
    load_close(&l);
    return good;
}

static int show_all(char *const *path, int n, const struct info_options *o,
                    const struct gguf_file_params *params)
{
    /* one operand is an object, several are an array of objects */
    struct json j;
    json_begin(&j, stdout);
    struct load_seen seen = { NULL, 0, 0 };
    bool plain = o->key || o->values || o->manifest;
    bool array = o->json && !plain && n > 1;
    /* checksums of all files are one manifest */
    bool apart = !o->json && !plain && o->show != SHOW_HASH;
    bool some = false;
    int status = MSG_DONE;
    if (array)
        json_open(&j, NULL, '[');
    for (int i = 0; i < n && !progress_stopped(); i++) {
        bool opened;
        if (load_is_duplicate(&seen, path[i]))
            continue;
        if (some && apart)
            putchar('\n');
        if (!show_file(path[i], o, params, &j, &seen, &opened))
            status = MSG_FAILED;
        some |= opened;
    }
    load_seen_fini(&seen);
    if (array)
        json_close(&j);
    if (o->json && !plain && (array || some))
        json_end(&j);
    return status;
}

/* Compare two models. As with diff(1) the status is also 1 if they differ. */
static int diff_files(char *const *path, const struct info_options *o,
                      const struct gguf_file_params *params)
{
    struct load a, b = { NULL, NULL, NULL };
    bool same = false;
    bool good = load_open(&a, path[0], !o->alone, params) &&
                load_open(&b, path[1], !o->alone, params) && can_show(&a, o) &&
                can_show(&b, o) && info_diff(&a, &b, o, &same);
    load_close(&a);
    load_close(&b);
    return good && same ? MSG_DONE : MSG_FAILED;
}

/* Create threads and decoders if tensor data will be read. */
static void prepare_options(struct info_options *o)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_error err;
    if (!(o->show & (SHOW_STATS | SHOW_CHECK | SHOW_HASH)) && !o->values &&
        !o->manifest && !o->diff)
        return;
    pp.n_threads = o->n_threads;
    if (gguf_rows_create(&o->rows, NULL, &err) != GGUF_OK ||
        gguf_pool_create(&o->pool, &pp, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        exit(MSG_FAILED);
    }
    progress_catch_signals();
}

int main(int argc, char **argv)
{
    struct info_options o;
    struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
    gg_os_program_arguments(&argc, &argv);
    int n = info_parse_options(&o, argc, argv);
    params.limits = &o.file_limits;
    params.opener = remote_opener();
    remote_args(argv + 1, n);
    load_raise_limits();
    prepare_options(&o);
    int status;
    if (o.diff)
        status = diff_files(argv + 1, &o, &params);
    else if (o.lines)
        status = info_lines(argv + 1, n, &o, &params) ? MSG_DONE : MSG_FAILED;
    else
        status = show_all(argv + 1, n, &o, &params);
    gguf_pool_destroy(o.pool);
    gguf_rows_destroy(o.rows);
    progress_raise();
    return msg_exit(status);
}
