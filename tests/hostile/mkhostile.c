/* SPDX-License-Identifier: MIT */
/* mkhostile.c - writes the hostile files: mkhostile DIRECTORY */
#include "config.h"
#include "tests/hostile/hostile.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: mkhostile DIRECTORY\n");
        return 2;
    }
    return !hostile_write(argv[1]);
}
