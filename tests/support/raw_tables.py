"""Tables that look like ordinary public ones: names, codes, missing values and shares as people publish them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Made = dict[str, Any]


@dataclass(frozen=True)
class RawTable:
    """A file to draft from: how its columns are made, its label, what a draft must hold, and how the file is written."""

    make: Callable[[np.random.Generator, int], Made]
    records: int
    label: str
    positive: str
    share: float
    categories: tuple[str, ...] = ()
    """Columns that must be categories, and below columns of numbers with the interval in which all cuts must lie."""

    ranges: tuple[tuple[str, float, float], ...] = ()
    absent: tuple[str, ...] = ()
    separator: str = ","
    decimal: str = "."
    bom: bool = False
    missing: tuple[str, ...] = ()

    def frame(self, seed: int = 0) -> pd.DataFrame:
        """The records, with a label that depends on the first numbers of a record."""
        rng = np.random.default_rng(seed)
        made = pd.DataFrame(self.make(rng, self.records))
        usable = [column for column in made.columns if column not in self.absent]
        score = sum(pd.to_numeric(made[c], errors="coerce").rank(pct=True).fillna(0.5) for c in usable[:6])
        noisy = np.asarray(score) + rng.normal(0, 0.5, self.records)
        words = {"1": "0", "yes": "no", "Yes": "No", ">50K": "<=50K", "good": "bad", "<30": "NO"}
        made[self.label] = np.where(noisy > np.quantile(noisy, 1 - self.share), self.positive, words[self.positive])
        return made

    def write(self, path: Path, seed: int = 0) -> Path:
        """The file."""
        encoding = "utf-8-sig" if self.bom else "utf-8"
        self.frame(seed).to_csv(path, index=False, sep=self.separator, decimal=self.decimal, encoding=encoding)
        return path


def _pick(rng: np.random.Generator, n: int, **shares: float) -> Any:
    total = sum(shares.values())
    return rng.choice([name.replace("_", " ") for name in shares], n, p=[share / total for share in shares.values()])


def _holes(rng: np.random.Generator, values: Any, share: float, code: object) -> Any:
    return np.where(rng.random(len(values)) < share, code, np.asarray(values, dtype=object))


def _age(rng: np.random.Generator, n: int, mean: float = 50) -> Any:
    return np.clip(rng.normal(mean, 14, n), 18, 90).astype(int)


def _heart(rng: np.random.Generator, n: int) -> Made:
    return {
        "age": _age(rng, n, 54),
        "sex": rng.choice([0, 1], n, p=[0.32, 0.68]),
        "cp": rng.choice([1, 2, 3, 4], n),
        "trestbps": rng.normal(131, 17, n).astype(int),
        "chol": rng.normal(246, 51, n).astype(int),
        "fbs": rng.choice([0, 1], n, p=[0.85, 0.15]),
        "restecg": rng.choice([0, 1, 2], n, p=[0.49, 0.02, 0.49]),
        "thalach": rng.normal(150, 22, n).astype(int),
        "exang": rng.choice([0, 1], n, p=[0.67, 0.33]),
        "oldpeak": rng.exponential(1, n).round(1),
        "slope": rng.choice([1, 2, 3], n),
        "ca": _holes(rng, rng.choice([0, 1, 2, 3], n, p=[0.58, 0.22, 0.13, 0.07]), 0.02, "?"),
        "thal": _holes(rng, rng.choice([3, 6, 7], n, p=[0.55, 0.06, 0.39]), 0.01, "?"),
    }


def _titanic(rng: np.random.Generator, n: int) -> Made:
    return {
        "PassengerId": np.arange(1, n + 1),
        "Pclass": rng.choice([1, 2, 3], n, p=[0.24, 0.21, 0.55]),
        "Name": [f"Person, Mr. {i}" for i in range(n)],
        "Sex": _pick(rng, n, male=0.65, female=0.35),
        "Age": _holes(rng, _age(rng, n, 30), 0.2, np.nan),
        "SibSp": rng.poisson(0.5, n),
        "Parch": rng.poisson(0.4, n),
        "Ticket": [f"A/{rng.integers(10**6)}" for _ in range(n)],
        "Fare": rng.exponential(32, n).round(4),
        "Cabin": _holes(rng, [f"C{i}" for i in range(n)], 0.77, np.nan),
        "Embarked": _pick(rng, n, S=0.72, C=0.19, Q=0.09),
    }


def _german(rng: np.random.Generator, n: int) -> Made:
    return {
        "checking_status": _pick(rng, n, A11=0.27, A12=0.27, A13=0.06, A14=0.4),
        "duration": rng.integers(4, 73, n),
        "credit_history": _pick(rng, n, A30=0.04, A31=0.05, A32=0.53, A33=0.09, A34=0.29),
        "purpose": _pick(rng, n, A43=0.28, A40=0.23, A42=0.18, A41=0.1, A49=0.1, A46=0.11),
        "credit_amount": rng.lognormal(7.8, 0.8, n).astype(int),
        "installment_rate": rng.choice([1, 2, 3, 4], n),
        "personal_status": _pick(rng, n, A93=0.55, A92=0.31, A94=0.14),
        "age": _age(rng, n, 35),
        "housing": _pick(rng, n, A152=0.71, A151=0.18, A153=0.11),
        "num_dependents": rng.choice([1, 2], n, p=[0.85, 0.15]),
        "own_telephone": _pick(rng, n, yes=0.4, none=0.6),
        "foreign_worker": _pick(rng, n, yes=0.96, no=0.04),
    }


def _telco(rng: np.random.Generator, n: int) -> Made:
    months = rng.integers(0, 73, n)
    yes_no = {name: _pick(rng, n, Yes=0.4, No=0.6) for name in ("Partner", "Dependents", "PaperlessBilling")}
    return {
        "customerID": [f"{i:04d}-ABCDE" for i in range(n)],
        "gender": _pick(rng, n, Male=0.5, Female=0.5),
        "SeniorCitizen": rng.choice([0, 1], n, p=[0.84, 0.16]),
        **yes_no,
        "tenure": months,
        "InternetService": _pick(rng, n, Fiber_optic=0.44, DSL=0.34, No=0.22),
        "Contract": _pick(rng, n, **{"Month-to-month": 0.55, "Two_year": 0.24, "One_year": 0.21}),
        "PaymentMethod": _pick(rng, n, Electronic_check=0.34, Mailed_check=0.23, Bank_transfer=0.22, Credit_card=0.21),
        "MonthlyCharges": rng.uniform(18, 119, n).round(2),
        "TotalCharges": _holes(rng, (months * 64.7).round(2), 0.002, " "),
    }


def _bank(rng: np.random.Generator, n: int) -> Made:
    return {
        "age": _age(rng, n, 41),
        "job": _pick(rng, n, blue_collar=0.22, management=0.21, technician=0.17, services=0.4),
        "marital": _pick(rng, n, married=0.6, single=0.28, divorced=0.12),
        "default": _pick(rng, n, no=0.98, yes=0.02),
        "balance": rng.normal(1362, 3000, n).astype(int),
        "housing": _pick(rng, n, yes=0.56, no=0.44),
        "loan": _pick(rng, n, no=0.84, yes=0.16),
        "contact": _pick(rng, n, cellular=0.65, unknown=0.29, telephone=0.06),
        "day": rng.integers(1, 32, n),
        "duration": rng.exponential(258, n).astype(int),
        "campaign": rng.geometric(0.4, n),
        "pdays": np.where(rng.random(n) < 0.82, -1, rng.integers(1, 400, n)),
        "poutcome": _pick(rng, n, unknown=0.82, failure=0.11, other=0.04, success=0.03),
    }


def _stroke(rng: np.random.Generator, n: int) -> Made:
    return {
        "id": rng.permutation(10 * n)[:n],
        "gender": _pick(rng, n, Female=0.59, Male=0.41),
        "age": _age(rng, n, 43),
        "hypertension": rng.choice([0, 1], n, p=[0.9, 0.1]),
        "heart_disease": rng.choice([0, 1], n, p=[0.95, 0.05]),
        "ever_married": _pick(rng, n, Yes=0.66, No=0.34),
        "work_type": _pick(rng, n, Private=0.57, **{"Self-employed": 0.16}, children=0.14, Govt_job=0.13),
        "Residence_type": _pick(rng, n, Urban=0.5, Rural=0.5),
        "avg_glucose_level": rng.gamma(6, 17, n).round(2),
        "bmi": _holes(rng, rng.normal(29, 7, n).round(1), 0.04, "N/A"),
        "smoking_status": _pick(rng, n, never_smoked=0.37, Unknown=0.3, formerly_smoked=0.17, smokes=0.16),
    }


def _hospital(rng: np.random.Generator, n: int) -> Made:
    return {
        "MRN": rng.integers(10**6, 10**7, n),
        "Age (years)": _age(rng, n, 68),
        "Sex": _pick(rng, n, M=0.5, F=0.5),
        "BMI": rng.normal(27, 5, n).round(1),
        "admission_date": pd.date_range("2021-01-01", periods=n).astype(str),
        "systolic_bp": _holes(rng, rng.normal(135, 20, n).astype(int), 0.05, -9),
        "creatinine": rng.gamma(4, 0.3, n).round(2),
        "ICU": rng.choice([0, 1], n, p=[0.8, 0.2]),
        "notes": [f"free text {i}, seen again" for i in range(n)],
    }


def _quality(rng: np.random.Generator, n: int) -> Made:
    return {
        "fixed acidity": rng.normal(6.9, 0.9, n).round(1),
        "volatile acidity": rng.gamma(5, 0.06, n).round(2),
        "residual sugar": rng.gamma(1.2, 5, n).round(1),
        "density": rng.normal(0.994, 0.003, n).round(5),
        "alcohol": rng.normal(10.5, 1.2, n).round(1),
        "colour": _pick(rng, n, white=0.75, red=0.25),
    }


def _attrition(rng: np.random.Generator, n: int) -> Made:
    return {
        "Age": _age(rng, n, 37),
        "BusinessTravel": _pick(rng, n, Travel_Rarely=0.71, Travel_Frequently=0.19, Non_Travel=0.1),
        "DailyRate": rng.integers(102, 1500, n),
        "Department": _pick(rng, n, Research=0.65, Sales=0.3, HR=0.05),
        "EmployeeCount": 1,
        "EmployeeNumber": np.arange(n),
        "JobLevel": rng.choice([1, 2, 3, 4, 5], n),
        "MonthlyIncome": rng.lognormal(8.6, 0.6, n).astype(int),
        "OverTime": _pick(rng, n, No=0.72, Yes=0.28),
        "YearsAtCompany": rng.poisson(7, n),
        "Over18": "Y",
        "StandardHours": 80,
    }


def _survey(rng: np.random.Generator, n: int) -> Made:
    """Thirty answers from 1 to 5, most of which say nothing; 9 is no answer."""
    return {f"Q{j}": _holes(rng, rng.integers(1, 6, n), 0.02, 9) for j in range(1, 31)}


AGES = ("age", 10, 90)
RAW_TABLES = {
    "heart": RawTable(_heart, 303, "target", "1", 0.46, ("sex",), (AGES, ("chol", 100, 400), ("trestbps", 90, 200))),
    "titanic": RawTable(
        _titanic, 891, "Survived", "1", 0.38, ("Sex",), (("Age", 10, 90),), ("PassengerId", "Name", "Ticket")
    ),
    "german credit": RawTable(_german, 1000, "class", "good", 0.7, (), (AGES, ("credit_amount", 50, 60_000))),
    "telco churn": RawTable(_telco, 7043, "Churn", "Yes", 0.27, ("gender", "Contract", "Partner"), (), ("customerID",)),
    "bank marketing": RawTable(
        _bank, 45_211, "y", "yes", 0.12, ("housing", "marital", "job"), (AGES, ("duration", 5, 2000)), separator=";"
    ),
    "stroke": RawTable(_stroke, 5110, "stroke", "1", 0.05, ("gender",), (AGES, ("bmi", 10, 60)), ("id",)),
    "hospital": RawTable(
        _hospital,
        300,
        "died",
        "yes",
        0.1,
        ("Sex",),
        (("Age (years)", 10, 90), ("BMI", 10, 60)),
        ("MRN", "notes", "admission_date"),
        separator=";",
        decimal=",",
        bom=True,
        missing=("-9",),
    ),
    "quality": RawTable(
        _quality, 6497, "good", "yes", 0.2, ("colour",), (("alcohol", 6, 15),), separator=";", decimal=","
    ),
    "survey": RawTable(_survey, 9000, "moved", "yes", 0.4, missing=("9",)),
    "few records": RawTable(_attrition, 150, "Attrition", "Yes", 0.16, (), (("Age", 10, 90),)),
}
