# The kernel-shaped stub: a bzImage whose real-mode code talks to COM1 and ends the VM. Booted by tests that need a VMM but
# no operating system: a tenth of a second instead of seconds. It never leaves real mode and loads nothing.
#
# The kernel command line selects what it does ("stub=WORD"; without one: exit):
#   exit[:V]   ready line, then V (default 16) to the debug-exit port: QEMU's status is (V << 1) | 1
#   flood:N    ready line, N bytes of pattern, all of them sent, then as exit
#   hang       ready line, then halted for good
#   silent     halted for good without a byte
#   triple     ready line, then a triple fault
#   reset      ready line, then a reset through the chipset
#   poweroff   ready line, then ACPI power-off
# Any other word: a line that says so, and status 3.
#
# Pattern: byte i is 'A' + (i & 15), but '\n' when (i & 63) is 63.
# Header: Linux Documentation/x86/boot.rst, protocol 2.12; fields that no loader reads for this file are 0.

        .code16
        .set    COM1, 0x3f8
        .set    DEBUG_EXIT, 0xf4
        .set    RESET_CONTROL, 0xcf9    # ICH9 and PIIX3
        .set    PM1A_CONTROL, 0x604     # where SeaBIOS puts it, on q35 and pc
        .set    SLEEP_S5, 0x2000

        .text
        .globl  start
start:
        .org    0x1f1
        .byte   setup_sectors           # setup_sects
        .word   0                       # root_flags
        .long   32                      # syssize: 512 bytes in paragraphs
        .word   0, 0, 0                 # ram_size, vid_mode, root_dev
        .word   0xaa55                  # boot_flag
        # 0x200: the loader enters here with ds = the segment of byte 0, cs = ds + 0x20, and a stack
        .byte   0xeb, main - 0x202      # jump, always in its short form
        .ascii  "HdrS"
        .word   0x020c                  # version
        .long   0                       # realmode_swtch
        .word   0, 0                    # start_sys_seg, kernel_version
        .byte   0, 1                    # type_of_loader, loadflags: LOADED_HIGH
        .word   0                       # setup_move_size
        .long   0x100000                # code32_start
        .long   0, 0                    # ramdisk_image, ramdisk_size
        .long   0                       # bootsect_kludge
        .word   0xfe00                  # heap_end_ptr
        .byte   0, 0                    # ext_loader_ver, ext_loader_type
command_line:
        .long   0                       # cmd_line_ptr, set by the loader
        .long   0x7fffffff              # initrd_addr_max
        .long   0x100000                # kernel_alignment
        .byte   0, 20                   # relocatable_kernel, min_alignment
        .word   0                       # xloadflags
        .long   255                     # cmdline_size
        .org    0x268

main:
        push    %ds                     # from here on cs equals ds, so that offsets in code are offsets in the file
        push    $entry
        lretw
entry:
        cld
        mov     command_line, %eax      # a linear address below 1 MiB
        mov     %ax, %si
        and     $15, %si
        shr     $4, %eax
        mov     %ax, %fs
find:                                   # fs:si runs over the command line, up to "stub="
        cmpb    $0, %fs:(%si)
        je      exit_default
        cmpl    $0x62757473, %fs:(%si)  # "stub"
        jne     find_next
        cmpb    $'=', %fs:4(%si)
        je      found
find_next:
        inc     %si
        jmp     find
found:
        add     $5, %si
        mov     $words, %bx             # a table of {letters, NUL, handler}
compare:
        mov     %si, %di
        cmpb    $0, (%bx)
        je      unknown
compare_letter:
        mov     (%bx), %al
        inc     %bx
        test    %al, %al
        jz      compare_end
        cmp     %fs:(%di), %al
        jne     compare_skip
        inc     %di
        jmp     compare_letter
compare_end:                            # the word has to end here too
        mov     %fs:(%di), %al
        cmp     $' ', %al
        jbe     matched
        cmp     $':', %al
        je      matched
        jmp     compare_next
compare_skip:                           # over the rest of the letters and their NUL
        mov     (%bx), %al
        inc     %bx
        test    %al, %al
        jnz     compare_skip
compare_next:
        add     $2, %bx
        jmp     compare
matched:
        mov     %di, %si
        jmp     *(%bx)

# %ecx = the decimal number after ':' at fs:si, or %ecx as it was when there is none
number:
        cmpb    $':', %fs:(%si)
        jne     number_end
        xor     %ecx, %ecx
number_digit:
        inc     %si
        movzbl  %fs:(%si), %eax
        sub     $'0', %al
        cmp     $9, %al
        ja      number_end
        imul    $10, %ecx
        add     %eax, %ecx
        jmp     number_digit
number_end:
        ret

# sends %al once the transmitter holds nothing
put:
        mov     %al, %ah
        mov     $COM1 + 5, %dx
put_wait:
        in      %dx, %al
        test    $0x20, %al
        jz      put_wait
        mov     $COM1, %dx
        mov     %ah, %al
        out     %al, %dx
        ret

ready:
        mov     $ready_line, %bx
line:                                   # sends the text at ds:bx
        mov     (%bx), %al
        test    %al, %al
        jz      number_end
        call    put
        inc     %bx
        jmp     line

exit_default:
        mov     $exit_word_end, %si     # no ':' there
        push    %ds
        pop     %fs
exit:
        call    ready
        mov     $16, %ecx
        call    number
leave:                                  # not before the last byte has left the shift register
        mov     $COM1 + 5, %dx
        in      %dx, %al
        test    $0x40, %al
        jz      leave
        mov     %cl, %al
        out     %al, $DEBUG_EXIT
        jmp     halt                    # without the device

flood:
        call    ready
        xor     %ecx, %ecx
        call    number
        xor     %ebx, %ebx
flood_byte:
        cmp     %ecx, %ebx
        je      flood_end
        mov     %bl, %al
        and     $15, %al
        add     $'A', %al
        mov     %bl, %ah
        and     $63, %ah
        cmp     $63, %ah
        jne     flood_put
        mov     $'\n', %al
flood_put:
        call    put
        inc     %ebx
        jmp     flood_byte
flood_end:
        mov     $16, %cl
        jmp     leave

unknown:
        mov     $unknown_line, %bx
        call    line
        mov     $1, %cl
        jmp     leave

triple:
        call    ready
        lidt    empty                   # no vector is within the limit, so neither #GP nor #DF can be delivered.
        lgdt    empty                   # A selector past the GDT's limit in protected mode, not int3 in real mode:
        mov     %cr0, %eax              # KVM's instruction emulator ignores the IDT's limit there
        or      $1, %al
        mov     %eax, %cr0
        mov     $8, %ax
        mov     %ax, %ds
reset:
        call    ready
        mov     $RESET_CONTROL, %dx
        mov     $6, %al
        out     %al, %dx
        jmp     halt
poweroff:
        call    ready
        mov     $PM1A_CONTROL, %dx
        mov     $SLEEP_S5, %ax
        out     %ax, %dx
        jmp     halt
hang:
        call    ready
silent:
halt:
        cli
        hlt
        jmp     halt

words:
        .ascii  "exit"
exit_word_end:
        .byte   0
        .word   exit
        .asciz  "flood"
        .word   flood
        .asciz  "hang"
        .word   hang
        .asciz  "silent"
        .word   silent
        .asciz  "triple"
        .word   triple
        .asciz  "reset"
        .word   reset
        .asciz  "poweroff"
        .word   poweroff
        .byte   0
ready_line:
        .asciz  "holdfast-stub ready\n"
unknown_line:
        .asciz  "holdfast-stub unknown behaviour\n"
empty:
        .word   0
        .long   0

        .balign 512
setup_end:
        .set    setup_sectors, (setup_end - start) / 512 - 1
        .fill   512, 1, 0xf4            # the protected-mode part: loaded, never entered; hlt if it were
