package batch_test

import (
	"fmt"

	"github.com/futura-run/futura/batch"
)

// A request is refused with what is wrong in it, before anything is stored.
func ExampleRequest_Validate() {
	request := batch.Request{
		Template:  batch.Template{FunctionID: "go:price", Method: "price"},
		Arguments: [][]string{{"tea"}, {"cake"}},
	}
	fmt.Println(request.Validate())
	request.Template.Config.Timeout = -1
	fmt.Println(request.Validate() != nil)
	// Output:
	// <nil>
	// true
}
