package clab

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

func (r *reader) cores(n *yaml.Node) (vnet.CPU, error) {
	if n.Kind == 0 {
		return 0, nil
	}
	cores, err := vnet.ParseCPU(n.Value)
	if err != nil {
		return 0, r.fail(n, "cpu: %v", err)
	}
	return cores, nil
}

// memory is written as Docker does: a number and a unit of powers of 1024, of
// which b and ib may be left out; without a unit it is bytes.
func (r *reader) memory(n *yaml.Node) (vnet.Bytes, error) {
	if n.Kind == 0 {
		return 0, nil
	}
	text := strings.ToLower(strings.ReplaceAll(n.Value, " ", ""))
	unit := strings.TrimLeft(text, "0123456789.")
	number, err := strconv.ParseFloat(strings.TrimSuffix(text, unit), 64)
	power := strings.Index("kmgt", strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i"))
	if bytes := unit == "" || unit == "b"; bytes {
		power = -1
	} else if power < 0 || len(strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")) != 1 {
		err = strconv.ErrSyntax
	}
	size := number * math.Pow(1024, float64(power+1))
	if err != nil || n.Kind != yaml.ScalarNode || !(size >= 0 && size < 1<<62) {
		return 0, r.fail(n, "memory: %s is not a size such as 256MiB or 4GB", short(n.Value))
	}
	return vnet.Bytes(size), nil
}
