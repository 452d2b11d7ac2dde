// Command concurrent prints the packages of the repository that start
// goroutines, for `make race`.
package main

import (
	"fmt"
	"log"
	"strings"

	"sublet/internal/archtest"
)

func main() {
	packages, err := archtest.Concurrent(".")
	if err != nil {
		log.Fatal("concurrent: ", err)
	}
	fmt.Println(strings.Join(packages, " "))
}
