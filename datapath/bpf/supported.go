package bpf

import (
	"fmt"
	"os"
	"strings"

	"sublet/datapath/kernel"
)

// Supported tries out what kernels before Linux 6.6 lack. Its error is one
// line: what this one lacks, and the package that cures it. What could not be
// tried is not held against the kernel. It needs root.
func Supported() error {
	return unsupported(vital(), kernel.Release(), cure)
}

func unsupported(list []kernel.Feature, release string, cure func(string) string) error {
	for _, f := range list {
		if f.Lacks() {
			return fmt.Errorf("this kernel, %s, has no %s: Linux 6.6 or newer is needed; %s and boot it", release, f.Name, cure(release))
		}
	}
	return nil
}

// cure names the kernel to install on this distribution.
func cure(release string) string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		text = nil
	}
	return cureOf(string(text), release)
}

// cureOf is cure by the text of os-release(5).
func cureOf(text, release string) string {
	words := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		words[name] = strings.Trim(value, `"'`)
	}
	switch words["ID"] + " " + words["VERSION_ID"] {
	case "debian 12":
		kind := "linux-image-amd64"
		if strings.Contains(release, "-cloud-") {
			kind = "linux-image-cloud-amd64"
		}
		return "install " + kind + " of bookworm-backports"
	case "ubuntu 22.04":
		return "install linux-generic-hwe-22.04"
	}
	return "install a newer kernel of your distribution"
}
