/* Which characters of a page are not shown, and why: asked of pdfium for every character, which in Python would take as
   long as reading the page. pdfium is not linked: the caller hands over its functions. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { INVISIBLE = 1, TRANSPARENT = 2, WHITE = 4, TINY = 8, OUTSIDE = 16 };

struct pdfium {
    void *(*text_object)(void *text, int index);
    int (*render_mode)(void *object);
    int (*fill_color)(void *object, unsigned *red, unsigned *green, unsigned *blue, unsigned *alpha);
    double (*font_size)(void *text, int index);
    int (*matrix)(void *text, int index, float *six);
    int (*box)(void *text, int index, double *left, double *right, double *bottom, double *top);
    int (*object_matrix)(void *object, float *six);
    int (*bounds)(void *object, float *left, float *bottom, float *right, float *top);
};

struct limits {
    int invisible_mode;
    unsigned pale;  /* red, green and blue from which on a colour is as good as white */
    unsigned faint; /* alpha below which a colour is as good as none */
    double size;    /* points below which nobody reads */
    double left, bottom, right, top;
};

static uint8_t ways_of_object(const struct pdfium *ask, const struct limits *limits, void *text, int index, void *object) {
    unsigned red, green, blue, alpha;
    uint8_t ways = 0;
    float m[6];
    if (ask->render_mode(object) == limits->invisible_mode)
        ways |= INVISIBLE;
    if (ask->fill_color(object, &red, &green, &blue, &alpha)) {
        if (alpha < limits->faint)
            ways |= TRANSPARENT;
        if (red >= limits->pale && green >= limits->pale && blue >= limits->pale)
            ways |= WHITE;
    }
    if (ask->matrix(text, index, m) && ask->font_size(text, index) * sqrt((double)m[2] * m[2] + (double)m[3] * m[3]) < limits->size)
        ways |= TINY;
    return ways;
}

/* Whether all of an object lies on the page. Inside a form its bounds are of the form's own space: then pdfium gives its
   text another matrix than the object, and nothing is said. */
static int is_inside(const struct pdfium *ask, const struct limits *limits, void *text, int index, void *object) {
    float left, bottom, right, top, of_text[6], of_object[6];
    if (!ask->matrix(text, index, of_text) || !ask->object_matrix(object, of_object) ||
        memcmp(of_text, of_object, sizeof of_text) || !ask->bounds(object, &left, &bottom, &right, &top))
        return 0;
    return left >= limits->left && bottom >= limits->bottom && right <= limits->right && top <= limits->top;
}

/* Fills in one byte for each character, and returns all their bits. What pdfium made up itself (spaces, line ends) is
   as the character before it. */
int glyphs_hidden(const struct pdfium *ask, const struct limits *limits, void *text, int count, uint8_t *ways) {
    void *last = 0;
    uint8_t all = 0, of_object = 0, before = 0;
    int inside = 0;
    for (int index = 0; index < count; index++) {
        double left, right, bottom, top;
        void *object = ask->text_object(text, index);
        if (object) {
            if (object != last) {
                of_object = ways_of_object(ask, limits, text, index, object);
                inside = is_inside(ask, limits, text, index, object);
                last = object;
            }
            before = of_object;
            if (!inside && ask->box(text, index, &left, &right, &bottom, &top) &&
                (right < limits->left || left > limits->right || top < limits->bottom || bottom > limits->top))
                before |= OUTSIDE;
            all |= before;
        }
        ways[index] = before;
    }
    return all;
}
