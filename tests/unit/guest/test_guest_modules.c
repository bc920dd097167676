/* Promises of guest/build/modinfo.h and module_set.h: dependencies come first and once, a broken module or a cycle is
 * an error, and no byte of a module file is believed. */
#include "guest/build/module_set.h"
#include "scratch.h"

#include "common/cleanup.h"
#include "tests/run_suite.h"

#include <elf.h>
#include <string.h>

static struct hf_module_set set;

static void setup(void)
{
    scratch_setup();
    set.count = 0;
    set.root = scratch_dir;
}

static void teardown(void)
{
    hf_module_set_clear(&set);
    scratch_teardown();
}

struct object {
    Elf64_Ehdr header;
    char names[32];
    char modinfo[256];
    Elf64_Shdr sections[3];
};

/* An ELF object with nothing but a .modinfo of these strings (each ended by NUL, `size` bytes together). */
static void make_object(struct object *object, const char *modinfo, size_t size)
{
    static const char names[] = "\0.shstrtab\0.modinfo";
    *object = (struct object){
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_REL,
                   .e_shoff = offsetof(struct object, sections),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 3,
                   .e_shstrndx = 1},
        .sections =
            {{0},
             {.sh_name = 1,
              .sh_type = SHT_STRTAB,
              .sh_offset = offsetof(struct object, names),
              .sh_size = sizeof names},
             {.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct object, modinfo), .sh_size = size}},
    };
    memcpy(object->names, names, sizeof names);
    ck_assert_uint_le(size, sizeof object->modinfo);
    memcpy(object->modinfo, modinfo, size);
}

static void write_module(const char *file, const char *modinfo, size_t size)
{
    struct object object;
    make_object(&object, modinfo, size);
    scratch_file(0, file, &object, sizeof object);
}
#define WRITE_MODULE(file, modinfo) write_module(file, modinfo, sizeof(modinfo))

static void write_sample(void)
{
    WRITE_MODULE("ring.ko", "license=GPL\0depends=");
    WRITE_MODULE("core-bus.ko", "depends=ring");
    WRITE_MODULE("net.ko", "alias=bus:d01v*\0alias=bus:d41v*\0depends=ring,core-bus");
    WRITE_MODULE("console.ko", "depends=core_bus,ring\0alias=bus:d03v*");
}

static char *list_text(void)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    hf_module_set_write_list(&set, out);
    fclose(out);
    return text;
}

START_TEST(dependencies_come_first_and_once)
{
    struct hf_error err = {0};
    write_sample();
    ck_assert_msg(hf_module_set_add(&set, "net", &err) == 0, "%s", err.message);
    ck_assert_msg(hf_module_set_add(&set, "console", &err) == 0, "%s", err.message);
    ck_assert_int_eq(hf_module_set_add(&set, "ring", &err), 0);
    cleanup_free char *text = list_text();
    ck_assert_str_eq(text, "ring -\n"
                           "core_bus ring\n"
                           "net ring,core_bus bus:d01v* bus:d41v*\n"
                           "console core_bus,ring bus:d03v*\n");
}
END_TEST

START_TEST(a_missing_dependency_names_who_needs_it)
{
    struct hf_error err = {0};
    WRITE_MODULE("net.ko", "depends=ring");
    ck_assert_int_eq(hf_module_set_add(&set, "net", &err), -1);
    ck_assert_str_eq(err.code, "module-missing");
    ck_assert_msg(strstr(err.message, "needed by net") && strstr(err.message, "ring.ko"), "%s", err.message);
    ck_assert_uint_eq(set.count, 0);
}
END_TEST

START_TEST(a_cycle_is_an_error)
{
    struct hf_error err = {0};
    WRITE_MODULE("a.ko", "depends=b");
    WRITE_MODULE("b.ko", "depends=a");
    ck_assert_int_eq(hf_module_set_add(&set, "a", &err), -1);
    ck_assert_str_eq(err.code, "module-cycle");
}
END_TEST

START_TEST(a_name_that_could_leave_the_directory_is_refused)
{
    static const char *const names[] = {"", "../net", "net.ko", "a b", "N", "*"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hf_error err = {0};
        ck_assert_int_eq(hf_module_set_add(&set, names[i], &err), -1);
        ck_assert_str_eq(err.code, "module-missing");
    }
}
END_TEST

START_TEST(a_file_cut_anywhere_is_refused)
{
    struct object object;
    make_object(&object, "depends=ring", 13);
    for (size_t length = 0; length < sizeof object; length++) {
        struct hf_error err = {0};
        struct hf_modinfo info;
        cleanup_free char *exact = malloc(length ? length : 1); /* exact, so that the sanitizer sees an overrun */
        memcpy(exact, &object, length);
        ck_assert_int_eq(hf_modinfo_find(exact, length, &info, &err), -1);
        ck_assert_str_eq(err.code, "modinfo-invalid");
    }
}
END_TEST

START_TEST(no_single_changed_byte_of_the_headers_reads_outside)
{
    struct object object;
    make_object(&object, "depends=ring", 13);
    cleanup_free unsigned char *bytes = malloc(sizeof object);
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < sizeof object; at++) {
        for (size_t i = 0; i < sizeof values; i++) {
            struct hf_error err = {0};
            struct hf_modinfo info;
            size_t cursor = 0;
            memcpy(bytes, &object, sizeof object);
            bytes[at] = values[i];
            if (hf_modinfo_find(bytes, sizeof object, &info, &err) != 0)
                continue;
            const char *value = hf_modinfo_next(&info, "depends", &cursor);
            ck_assert(value == NULL || (const unsigned char *)value + strlen(value) < bytes + sizeof object);
        }
    }
}
END_TEST

START_TEST(a_key_is_matched_whole)
{
    static const char strings[] = "depends_on=x\0depend=y\0depends=z";
    const struct hf_modinfo info = {strings, sizeof strings};
    size_t cursor = 0;
    ck_assert_str_eq(hf_modinfo_next(&info, "depends", &cursor), "z");
    ck_assert_ptr_null(hf_modinfo_next(&info, "depends", &cursor));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guest modules");
    TCase *tests = tcase_create("modules");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, dependencies_come_first_and_once);
    tcase_add_test(tests, a_missing_dependency_names_who_needs_it);
    tcase_add_test(tests, a_cycle_is_an_error);
    tcase_add_test(tests, a_name_that_could_leave_the_directory_is_refused);
    tcase_add_test(tests, a_file_cut_anywhere_is_refused);
    tcase_add_test(tests, no_single_changed_byte_of_the_headers_reads_outside);
    tcase_add_test(tests, a_key_is_matched_whole);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
