package vnet

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// otherRate says how to write a rate that stands in the units of other
// programs, or "": without a unit, as a bare prefix, in bytes, or in the
// bits of network papers. "MBps" is refused, not taken for megabits.
func otherRate(s string) string {
	number, unit := splitQuantity(s)
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 || value > 1<<40 {
		return ""
	}
	number = strconv.FormatFloat(value, 'f', -1, 64) // 1e6 is not how numbers are written
	if unit == "" {
		return fmt.Sprintf("is not a rate without its unit: write %skbit, %sMbit or %sGbit", number, number, number)
	}
	prefix, rest := unit[:1], unit[1:]
	power := strings.Index("kmgt", strings.ToLower(prefix))
	if power < 0 {
		power, rest = -1, unit
	}
	base := 1000.0
	if after, binary := strings.CutPrefix(rest, "i"); binary && power >= 0 {
		base, rest = 1024, after
	}
	scaled := value * math.Pow(base, float64(power+1))
	switch rest {
	case "B/s", "Bps", "B", "byte/s", "bytes/s", "Byte/s", "Bytes/s":
		return "counts bytes: write " + Rate(math.Round(8*scaled)).String()
	case "", "b", "b/s":
		return "is not how rates are written: write " + Rate(math.Round(scaled)).String()
	}
	return ""
}

// otherSize says how to write a size without a B, or "".
func otherSize(s string) string {
	number, unit := splitQuantity(s)
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return ""
	}
	switch strings.ToLower(unit) {
	case "":
		return fmt.Sprintf("is not a size without its unit: write %sMiB or %sGiB", number, number)
	case "k", "m", "g", "t", "ki", "mi", "gi", "ti":
		return fmt.Sprintf("has half a unit: write %s%siB", number, strings.ToUpper(unit[:1]))
	}
	return ""
}

// otherCPU says how to write thousandths of a core, or "".
func otherCPU(s string) string {
	number, thousandths := strings.CutSuffix(s, "m")
	value, err := strconv.Atoi(number)
	if !thousandths || err != nil || value < 0 {
		return ""
	}
	return "is not a number of cores: write " + CPU(value).String()
}
