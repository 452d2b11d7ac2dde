package capture

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxFilter bounds the instructions of a filter; the kernel takes 4096
// (BPF_MAXINSNS), and what people type compiles to some dozens.
const MaxFilter = 512

// Filter is a classic BPF program over Ethernet frames: those for which it
// returns 0 are not captured (Linux, networking/filter).
type Filter []unix.SockFilter

// String writes one instruction behind another, "code,jt,jf,k;...": what
// ParseFilter reads.
func (f Filter) String() string {
	words := make([]string, len(f))
	for i, in := range f {
		words[i] = fmt.Sprintf("%d,%d,%d,%d", in.Code, in.Jt, in.Jf, in.K)
	}
	return strings.Join(words, ";")
}

// ParseFilter reads what String writes. Whether it is a program the kernel says.
func ParseFilter(text string) (Filter, error) {
	words := strings.Split(text, ";")
	if len(words) > MaxFilter {
		return nil, fmt.Errorf("it has %d instructions, and %d are the most", len(words), MaxFilter)
	}
	f := make(Filter, len(words))
	for i, word := range words {
		numbers := strings.Split(word, ",")
		if len(numbers) != 4 {
			return nil, fmt.Errorf("instruction %d: %q: write code,jt,jf,k", i+1, word)
		}
		var of [4]uint64
		for j, bits := range []int{16, 8, 8, 32} {
			var err error
			if of[j], err = strconv.ParseUint(numbers[j], 10, bits); err != nil {
				return nil, fmt.Errorf("instruction %d: %q: write code,jt,jf,k", i+1, word)
			}
		}
		f[i] = unix.SockFilter{Code: uint16(of[0]), Jt: uint8(of[1]), Jf: uint8(of[2]), K: uint32(of[3])}
	}
	return f, nil
}

// attach has a socket give no other packets; the kernel verifies the program.
func (f Filter) attach(fd int) error {
	if len(f) == 0 {
		return nil
	}
	program := &unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, program); err != nil {
		return fmt.Errorf("the kernel does not take the filter: %w", err)
	}
	return nil
}
