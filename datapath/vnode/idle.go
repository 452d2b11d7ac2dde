package vnode

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// waiting is a program that calls pause(2) for ever, by architecture.
var waiting = map[string]struct {
	machine elf.Machine
	code    []byte
}{
	"amd64": {elf.EM_X86_64, []byte{
		0xb8, 34, 0, 0, 0, // mov eax, SYS_pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the first
	}},
}

// idle becomes a process of some kilobytes that waits for ever. A node has its
// files from an image, or has changed the host's: no program of them, nor their
// linker, may run with the rights of the host's root.
func (s pause) idle() error {
	program, known := waiting[runtime.GOARCH]
	if !known {
		return s.stay()
	}
	fd, err := unix.MemfdCreate("pause", unix.MFD_CLOEXEC)
	if err != nil {
		return s.stay()
	}
	file := os.NewFile(uintptr(fd), "pause")
	if _, err := file.Write(executable(program.machine, program.code)); err != nil {
		return err
	}
	err = unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"pause"}, []string{})
	return errors.Join(fmt.Errorf("pause: %w", err), s.stay()) // vm.memfd_noexec
}

// executable is a static program of one segment (elf(5)).
func executable(machine elf.Machine, code []byte) []byte {
	const header, segment, base = 64, 56, 0x400000
	size := uint64(header + segment + len(code))
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, elf.Header64{ // into memory
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: base + header + segment, Phoff: header, Ehsize: header, Phentsize: segment, Phnum: 1,
	})
	_ = binary.Write(&b, binary.LittleEndian, elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 0x1000,
	})
	b.Write(code)
	return b.Bytes()
}
