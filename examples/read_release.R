# Score a CSV file with a full card, without privsolve: Rscript read_release.R release.json table.csv > scored.csv
# For columns as private drafts have them: bins with the encoding "thresholds", and lists of plain values.
library(jsonlite)
files <- commandArgs(trailingOnly = TRUE)
model <- fromJSON(files[1])$model
stopifnot(model$kind == "full-card", model$scales == 1)
table <- read.csv(files[2], colClasses = "character", check.names = FALSE, na.strings = "")
weights <- setNames(model$weights, model$features)

scored <- function(name, column) { # the points of every row, and the fewest that an answer can have
  points <- function(answer) if (is.null(answer)) 0 else weights[[paste0(name, "=", answer)]]
  value <- trimws(table[[name]])
  value[value %in% c("", column[["missing_values"]])] <- NA
  unknown <- points(if (is.null(column[["missing"]])) column[["other"]] else column[["missing"]])
  if (is.null(column[["bins"]])) { # listed values, the one that scores nothing, and any other
    listed <- as.character(column[["categories"]])
    answers <- c(sapply(listed, points), if (!is.null(column[["no"]])) 0, points(column[["other"]]))
    part <- answers[match(value, c(listed, column[["no"]]), nomatch = length(answers))]
  } else { # points add up over all cuts that are not above the number
    stopifnot(column[["encoding"]] == "thresholds")
    value <- suppressWarnings(as.numeric(value))
    answers <- c(0, cumsum(weights[startsWith(names(weights), paste0(name, ">="))]))
    part <- answers[findInterval(value, column[["bins"]]) + 1]
  }
  list(points = ifelse(is.na(value), unknown, part), fewest = min(answers, unknown))
}

columns <- Map(scored, names(model$schema$columns), model$schema$columns)
sum_of <- function(what) Reduce(`+`, lapply(columns, `[[`, what))
risk <- 1 / (1 + exp(-(model$log_odds * (sum_of("points") + weights[["intercept"]]) + model$base)))
write.csv(data.frame(score = sum_of("points") - sum_of("fewest"), risk = risk), row.names = FALSE)
