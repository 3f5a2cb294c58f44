/* SPDX-License-Identifier: MIT */
/* ranks_none.c - ranks.h in a build without MPI: refuses --mpi */
#include "config.h"
#include "tools/common/ranks.h"
#include "tools/common/msg.h"

#include <stdlib.h>

void ranks_begin(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
}

void ranks_require(bool mpi)
{
    if (!mpi)
        return;
    msg_error(NULL,
              "--mpi: built without MPI: ./configure --with-mpi "
              "builds %s with it",
              msg_tool());
    exit(MSG_FAILED);
}

bool ranks_is_worker(void)
{
    return false;
}

size_t ranks_count(void)
{
    return 0;
}

size_t ranks_own(void)
{
    return 0;
}

void ranks_exchange(void *data, const uint64_t *off)
{
    (void)data;
    (void)off;
}

bool ranks_poll(void)
{
    return true;
}

bool ranks_share(const struct ranks_work *w)
{
    (void)w;
    return false;
}
