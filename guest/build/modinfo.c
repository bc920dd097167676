/* Implementation of modinfo.h. */
#include "guest/build/modinfo.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static int refuse(struct hf_error *err, const char *expected)
{
    return hf_error_set(err, "modinfo-invalid", 0, "", "not a kernel module: expected %s", expected);
}

static bool within(uint64_t offset, uint64_t size, size_t length)
{
    return offset <= length && size <= length - offset;
}

static int read_section(const unsigned char *bytes, size_t length, const Elf64_Ehdr *header, unsigned index,
                        Elf64_Shdr *section, struct hf_error *err)
{
    const uint64_t offset = header->e_shoff + (uint64_t)index * sizeof *section;
    if (index >= header->e_shnum || header->e_shoff > length || !within(offset, sizeof *section, length))
        return refuse(err, "its section headers within the file");
    memcpy(section, bytes + offset, sizeof *section);
    if (section->sh_type != SHT_NOBITS && !within(section->sh_offset, section->sh_size, length))
        return refuse(err, "every section within the file");
    return 0;
}

int hf_modinfo_find(const void *bytes, size_t length, struct hf_modinfo *info, struct hf_error *err)
{
    static const char wanted[] = ".modinfo";
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    if (length < sizeof header)
        return refuse(err, "an ELF header");
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof section)
        return refuse(err, "a 64-bit little-endian ELF object");
    if (read_section(bytes, length, &header, header.e_shstrndx, &names, err) != 0)
        return -1;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (read_section(bytes, length, &header, i, &section, err) != 0)
            return -1;
        if (!within(section.sh_name, sizeof wanted, names.sh_size) ||
            memcmp((const char *)bytes + names.sh_offset + section.sh_name, wanted, sizeof wanted) != 0)
            continue;
        *info = (struct hf_modinfo){(const char *)bytes + section.sh_offset, section.sh_size};
        if (section.sh_type != SHT_PROGBITS || info->size == 0 || info->section[info->size - 1] != '\0')
            return refuse(err, "a section .modinfo that ends with NUL");
        return 0;
    }
    return refuse(err, "a section .modinfo");
}

const char *hf_modinfo_next(const struct hf_modinfo *info, const char *key, size_t *cursor)
{
    const size_t key_length = strlen(key);
    while (*cursor < info->size) {
        const char *entry = info->section + *cursor;
        *cursor += strlen(entry) + 1;
        if (strncmp(entry, key, key_length) == 0 && entry[key_length] == '=')
            return entry + key_length + 1;
    }
    return NULL;
}
