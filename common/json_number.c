/* Implementation of json_number.h: pure, except that the thread's locale is "C" while a double is converted. */
#include "common/json_number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hf_json_text_to_int64(const char *text, int64_t *out)
{
    bool negative = text[0] == '-';
    const char *digit = text + negative;
    if (*digit == '\0')
        return false;
    int64_t value = 0;
    for (; *digit; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        int step = negative ? '0' - *digit : *digit - '0';
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, step, &value))
            return false;
    }
    *out = value;
    return true;
}

/* glibc hands out its static object for the locale "C": nothing is allocated, nothing has to be freed. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", NULL);
}

bool hf_json_text_to_double(const char *text, double *out)
{
    *out = strtod_l(text, NULL, c_locale());
    return isfinite(*out);
}

void hf_json_double_to_text(double value, char out[HF_JSON_NUMBER_SIZE])
{
    locale_t previous = uselocale(c_locale());
    /* 17 significant digits identify every double, so the loop always ends with an exact text. */
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(out, HF_JSON_NUMBER_SIZE, "%.*e", digits - 1, value);
        if (strtod(out, NULL) == value) /* exact on purpose: the text must give back the same double */
            break;
    }
    const char *exponent_text = strchr(out, 'e');
    long exponent = exponent_text ? strtol(exponent_text + 1, NULL, 10) : 0;
    if (exponent >= -4 && exponent < 16) {
        int decimals = digits - 1 - (int)exponent;
        snprintf(out, HF_JSON_NUMBER_SIZE, "%.*f", decimals > 0 ? decimals : 1, value);
    }
    uselocale(previous);
}
