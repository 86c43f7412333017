/* Runs two programs and prints their records:
 *   cc hello.c $(pkg-config --cflags --libs hotcell) && ./a.out [PROGRAMS SHARE]
 */
#include <hotcell.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct hotcell_options options = {.size = sizeof options, .workers = 2};
    struct hotcell *cells = NULL;
    char message[256] = "", *record = NULL;
    uint64_t ticket;
    if (argc == 3) {
        options.programs = argv[1];
        options.share = argv[2];
    }
    if (hotcell_open(&options, &cells, message) != 0) {
        (void)fprintf(stderr, "hello: %s\n", message);
        return 1;
    }
    /* Work that goes on beside ours. */
    int error = hotcell_submit(cells, "{\"language\": \"bash\", \"code\": \"echo from bash\"}", &ticket);
    if (error == 0 && (error = hotcell_run(cells, "{\"language\": \"python\", \"code\": \"print(2**100)\"}",
                                           &record)) == 0) {
        (void)puts(record);
        hotcell_free(record);
        error = hotcell_wait(cells, ticket, -1, &record);
    }
    if (error == 0) {
        (void)puts(record);
        hotcell_free(record);
    }
    hotcell_close(cells);
    return error == 0 ? 0 : 1;
}
