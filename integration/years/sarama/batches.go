package main

import "MODULE"

func init() {
	versions["0.11"] = sarama.V0_11_0_0
	versions["1.0"] = sarama.V1_0_0_0
}
