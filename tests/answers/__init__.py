"""Right and wrong answers to exercises, a module for each lesson; `exercise_answers.py` collects them."""
