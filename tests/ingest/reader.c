// In Tesseract's place: says which languages it has, tries what it must not, and waits for ever at a picture 7 pixels wide.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void tried(const char *what, int result) { printf("%s %s\n", what, result < 0 ? "refused" : "succeeded"); }

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--list-langs")) {
        printf("List of available languages in \"%s/\" (1):\neng\n", FOLDER);
        return 0;
    }
    int width = 0;
    if (scanf("P5 %d", &width) != 1)
        return 1;
    while (width == 7)
        sleep(1);
    tried("data", open(FOLDER "/eng", O_RDONLY));
    tried("read", open(TARGET, O_RDONLY));
    tried("write", open(TARGET, O_WRONLY));
    tried("socket", socket(AF_INET, SOCK_STREAM, 0));
    tried("shell", execl("/bin/sh", "sh", "-c", "echo shell succeeded", (char *)0));
    return 0;
}
