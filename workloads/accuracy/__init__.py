"""Published times beside computed ones: rows with source and mark, and the errors of the costs against them."""
