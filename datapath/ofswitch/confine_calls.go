package ofswitch

import (
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// plainCalls are allowed with any arguments: memory, threads, clocks, descriptors
// and files of the working directory. Names that a processor does not have are left out.
var plainCalls = []string{
	"read", "readv", "pread64", "write", "writev", "pwrite64", "close", "lseek", "fcntl", "dup3", "pipe2",
	"openat", "newfstatat", "fstat", "fstatat", "unlinkat", "renameat", "ftruncate", "fdatasync", "fsync", "getdents64", "readlinkat",
	"munmap", "madvise", "mincore", "brk", "futex", "sched_yield", "sched_getaffinity", "gettid", "getpid", "getrandom",
	"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "restart_syscall", "uname",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "setitimer", "timer_create", "timer_settime", "timer_delete",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "poll", "ppoll", "exit", "exit_group",
	"bind", "listen", "connect", "accept4", "shutdown", "getsockname", "getpeername", "getsockopt",
	"recvfrom", "recvmsg", "recvmmsg",
}

// namespaces are flags of clone(2) that make some.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

type conditions = seccomp.ArgumentConditions

func is(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.Equal, Value: value}
}

func without(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: bits}
}

// boundCalls are allowed with some arguments: any one of a call's rows is enough.
func boundCalls(cache bool) map[string][]conditions {
	bound := map[string][]conditions{
		"mmap":     {{without(2, unix.PROT_EXEC)}},
		"mprotect": {{without(2, unix.PROT_EXEC)}},
		"tgkill":   {{is(0, uint64(unix.Getpid()))}},
		"clone":    {{{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}, without(0, namespaces)}},
		"socket":   {{is(0, unix.AF_INET)}, {is(0, unix.AF_INET6)}, {is(0, unix.AF_UNIX)}, {is(0, unix.AF_PACKET)}},
		// Of the calling thread alone: others of root's could be made to starve.
		"sched_getattr": {{is(0, 0)}},
		"sched_setattr": {{is(0, 0)}},
		// No message to an address: such a one is let through by the kernel whatever
		// the netlink socket's rights are.
		"sendto": {{is(4, 0)}},
		// No tables of rules or routes, which IPPROTO_IP and IPPROTO_IPV6 have.
		"setsockopt": {{is(1, unix.SOL_SOCKET)}, {is(1, unix.SOL_PACKET)}, {is(1, unix.IPPROTO_TCP)}, {is(1, unix.IPPROTO_IPV6), is(2, unix.IPV6_V6ONLY)}},
	}
	if cache {
		for _, command := range []uint64{unix.BPF_MAP_LOOKUP_ELEM, unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM, unix.BPF_PROG_QUERY, unix.BPF_LINK_CREATE, unix.BPF_PROG_ATTACH, unix.BPF_PROG_DETACH} {
			bound["bpf"] = append(bound["bpf"], conditions{is(0, command)})
		}
	}
	return bound
}

// calls is the policy: what is not listed is refused with EPERM.
func calls(cache bool) (p seccomp.Policy, err error) {
	known, err := arch.GetInfo("")
	if err != nil {
		return p, err
	}
	lacks := func(name string) bool { _, has := known.SyscallNames[name]; return !has }
	p.DefaultAction = seccomp.ActionErrno
	p.Syscalls = []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: slices.DeleteFunc(slices.Clone(plainCalls), lacks)}}
	for name, rows := range boundCalls(cache) {
		if lacks(name) {
			continue
		}
		group := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
		for _, row := range rows {
			group.NamesWithCondtions = append(group.NamesWithCondtions, seccomp.NameWithConditions{Name: name, Conditions: row})
		}
		p.Syscalls = append(p.Syscalls, group)
	}
	return p, nil
}
