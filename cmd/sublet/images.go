package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"sublet/datapath/image"
	"sublet/datapath/image/registry"
	"sublet/vnet"
)

// imageOptions say which images nodes may run.
type imageOptions struct {
	dir        string
	registries []string
	quota      string
	bytes      vnet.Bytes
}

func (o *imageOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.dir, "images", "", "directory of images that tenants may run in their nodes, by their paths below it (default: none)")
	f.StringArrayVar(&o.registries, "registry", nil, "registry from which tenants may run images, such as docker.io; may be given several times (default: none)")
	f.StringVar(&o.quota, "images-quota", vnet.Bytes(image.DefaultQuota).String(), "room for all unpacked images of a host; those unused for longest leave for others")
}

// check refuses a directory that is none, and makes its path absolute.
func (o *imageOptions) check() error {
	if o.dir != "" {
		info, err := os.Stat(o.dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no directory", o.dir)
		}
		if err != nil {
			return badInput{fmt.Errorf("--images: %w", err)}
		}
		if o.dir, err = filepath.Abs(o.dir); err != nil {
			return err
		}
	}
	quota, err := vnet.ParseBytes(o.quota)
	if err != nil || quota <= 0 {
		return badInput{fmt.Errorf("--images-quota: %q is no size: write one such as 32GiB", o.quota)}
	}
	o.bytes = quota
	for _, name := range o.registries {
		if err := registry.Check(name); err != nil {
			return badInput{fmt.Errorf("--registry: %w", err)}
		}
	}
	return nil
}

// args are the same for an agent that this program starts.
func (o *imageOptions) args() (list []string) {
	if o.dir != "" {
		list = append(list, "--images", o.dir)
	}
	for _, name := range o.registries {
		list = append(list, "--registry", name)
	}
	return append(list, "--images-quota", o.quota)
}
