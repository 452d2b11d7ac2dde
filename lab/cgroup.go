package lab

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Cgroup names the control group below which each agent of a run directory
// keeps a group of its host's name. Run directories do not share any.
func Cgroup(run string) string {
	if run == "/run/sublet" {
		return "sublet"
	}
	return fmt.Sprintf("sublet-%08x", hashOf(run))
}

// removeCgroups removes a group with all below it, and what runs there, in
// every hierarchy.
func removeCgroups(path string) error {
	groups, err := kernel.FindCgroups("/sys/fs/cgroup")
	if err != nil {
		return err
	}
	mounts := map[string]bool{groups.V2: true}
	for _, mount := range groups.V1 {
		mounts[mount] = true
	}
	delete(mounts, "")
	below := map[string]bool{}
	for mount := range mounts {
		err := filepath.WalkDir(filepath.Join(mount, path), func(dir string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				relative, _ := filepath.Rel(mount, dir)
				below[relative] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return removeGroups(groups, mounts, below)
}

// removeGroups removes children before parents.
func removeGroups(groups kernel.Cgroups, mounts, paths map[string]bool) error {
	sorted := make([]string, 0, len(paths))
	for path := range paths {
		sorted = append(sorted, path)
	}
	slices.SortFunc(sorted, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, path := range sorted {
		if err := groups.Group(path).Remove(); err != nil {
			return err
		}
		for mount := range mounts { // hierarchies that Group does not use
			_ = unix.Rmdir(filepath.Join(mount, path))
		}
	}
	if len(sorted) > 0 {
		for mount := range mounts { // refused while another host is there
			_ = unix.Rmdir(filepath.Join(mount, filepath.Dir(sorted[len(sorted)-1])))
		}
	}
	return nil
}
